"""How two programs name the same thing: the rules that turn either spelling into one.

module.encoder.0.norm.gamma   →  encoder.0.norm.weight        wrappers dropped, last words translated
Default/network-WithLossCell/_backbone-Net/fc1-Dense/MatMul-op0  →  fc1/MatMul-op0
nn.BatchNorm2d, BatchNorm, aten.batch_norm                       →  batchnorm
"""

from __future__ import annotations

import re
from functools import lru_cache

LAST_WORDS = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "moving_var": "running_var",
    "embedding_table": "weight",
    "kernel": "weight",
    "embeddings": "weight",
}
"""What MindSpore (and Keras) call the parameters PyTorch calls weight, bias, running_mean …, printed side by side."""

WRAPPERS = frozenset(
    [
        "module",
        "_orig_mod",
        "_fsdp_wrapped_module",
        "_checkpoint_wrapped_module",
        "network",
        "_network",
        "backbone",
        "_backbone",
    ]
)
"""Scopes that data parallelism, compilation and MindSpore's training cells put around a network."""

HEADS = frozenset(
    [
        "model",
        "net",
        "state_dict",
        "model_state_dict",
        "model_state",
        "params",
        "state",
        "ema",
        "student",
        "Default",
        "Gradients",
    ]
)
"""First words under which checkpoints and dumps file a network; dropped only where the rest then fits."""

IGNORABLE = ("num_batches_tracked",)
"""Buffers one framework keeps and the other does not have."""

_SYNONYMS = {
    "dense": "linear",
    "fullyconnected": "linear",
    "addmm": "linear",
    "mm": "matmul",
    "bmm": "matmul",
    "batchmatmul": "matmul",
    "nativebatchnorm": "batchnorm",
    "nativelayernorm": "layernorm",
    "convolution": "conv",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "relu6": "relu6",
    "biasadd": "add",
    "tensoradd": "add",
    "maxpool2d": "maxpool",
    "avgpool2d": "avgpool",
    "sequentialcell": "sequential",
    "celllist": "modulelist",
    "multiheadattention": "attention",
    "scaleddotproductattention": "attention",
}
_TYPE_NOISE = re.compile(
    r"^(?:aten[.:]+|torch\.|prims\.|nn\.|F\.|PrimFunc_|mindspore\.|ops\.|mint\.)+|\.(?:default|Tensor|Scalar|out)$"
)
_DIMENSION = re.compile(r"(?<=[a-z])[123]d$")


@lru_cache(maxsize=65536)
def canonical(name: str) -> str:
    """The name in one spelling: wrappers dropped, the last word translated."""
    if "/" in name and (name.startswith(("Default/", "Gradients/", "recompute_"))):
        name = _from_scope(name)
    path, slash, operator = name.partition("/")
    words = [word for word in path.split(".") if word not in WRAPPERS]
    if words and not slash:
        words[-1] = LAST_WORDS.get(words[-1], words[-1])
    return ".".join(words) + slash + operator


def without_heads(name: str) -> str:
    """The canonical name without the first words that only say where in a file it stood."""
    words = canonical(name).split(".")
    while len(words) > 1 and words[0] in HEADS:
        words.pop(0)
    return ".".join(words)


@lru_cache(maxsize=4096)
def canonical_type(name: str) -> str:
    """`nn.BatchNorm2d`, `aten.batch_norm.default`, `BatchNorm` → `batchnorm`."""
    before = ""
    while before != name:
        before, name = name, _TYPE_NOISE.sub("", name)
    short = name.replace("_", "").lower()
    short = _SYNONYMS.get(short, short)
    bare = _DIMENSION.sub("", short)
    return _SYNONYMS.get(bare, bare)


def last_word(name: str) -> str:
    """`weight` for `bn1.gamma`."""
    return canonical(name).rsplit(".", 1)[-1]


def owner(name: str) -> str:
    """The module a parameter belongs to: `encoder.0.norm` for `encoder.0.norm.weight`."""
    cut = max(name.rfind("."), name.rfind("/"))
    return name[:cut] if cut > 0 else ""


def ignorable(name: str) -> bool:
    return name.rsplit(".", 1)[-1] in IGNORABLE


def _from_scope(name: str) -> str:
    parts = name.split("/")
    backward = "Gradients" in parts
    kept = [part.rsplit("-", 1)[0] for part in parts[:-1] if part not in ("Default", "Gradients")]
    kept = [part for part in kept if part not in WRAPPERS]
    return ".".join(kept) + ("/grad." if backward else "/") + parts[-1]
