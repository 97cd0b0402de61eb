"""The names of weights as the other framework spells them, without the wrappers a training put around a network.

    module.bn.weight   bn.running_mean   embed.weight          PyTorch
    bn.gamma           bn.moving_mean    embed.embedding_table  MindSpore

Which weight is a scale of a norm or a table of an embedding is read from what stands beside it and from its shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from misstep.store.checkpoint.record import section_of

Arrays = Mapping[str, NDArray[Any]]

_ANYWHERE = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
_AROUND = frozenset(["module", "network", "_network", "backbone", "_backbone", "state_dict", "model_state_dict"])
_TO_TORCH = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "embedding_table": "weight",
}
_EMBEDDINGS = ("embed", "wte", "wpe", "tok_emb", "pos_emb")


def weights_alone(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The weights without optimizer state and without wrappers: a first word that all of them share."""
    kept = {name: array for name, array in arrays.items() if section_of(name) == "weights"}
    names = {name: ".".join(word for word in name.split(".") if word not in _ANYWHERE) for name in kept}
    nested = len(kept) < len(arrays)
    while True:
        heads = {name.partition(".")[0] for name in names.values() if "." in name}
        alone = len(heads) == 1 and all("." in name for name in names.values())
        head = next(iter(heads), "")
        wrapped = all(name.split(".")[1] in _AROUND for name in names.values() if "." in name)
        if not alone or not (head in _AROUND or (head == "model" and (nested or wrapped))):
            break
        names = {name: short.partition(".")[2] for name, short in names.items()}
    return {names[name]: array for name, array in kept.items()}


def as_torch(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Weights under PyTorch's names."""
    return {_last(name, _TO_TORCH): array for name, array in weights_alone(arrays).items()}


def as_mindspore(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Weights under MindSpore's names; what MindSpore has no counterpart of is left out."""
    given = weights_alone(arrays)
    found = {}
    for name, array in given.items():
        scope, _, leaf = name.rpartition(".")
        if leaf == "num_batches_tracked":
            continue
        weight = given.get(f"{scope}.weight")
        words = {"running_mean": "moving_mean", "running_var": "moving_variance"}
        if weight is not None and weight.ndim == 1 and "." in name:
            words |= {"weight": "gamma", "bias": "beta"}
        elif leaf == "weight" and array.ndim == 2 and _is_embedding(scope, given):
            words["weight"] = "embedding_table"
        found[_last(name, words)] = array
    return found


def _is_embedding(scope: str, given: Arrays) -> bool:
    return f"{scope}.bias" not in given and any(word in scope.rsplit(".", 1)[-1].lower() for word in _EMBEDDINGS)


def _last(name: str, words: Mapping[str, str]) -> str:
    scope, dot, leaf = name.rpartition(".")
    return f"{scope}{dot}{words.get(leaf, leaf)}"
