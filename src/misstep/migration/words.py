"""What the two frameworks call the same parameter of the same layer."""

from __future__ import annotations

from misstep.compare.names import canonical

LEAVES = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "embedding_table": "weight",
}
"""MindSpore's word → PyTorch's, for normalisations and embeddings."""

NORMS = frozenset(
    {
        *(f"{kind}Norm{dimension}d" for kind in ("Batch", "Instance") for dimension in (1, 2, 3)),
        *("SyncBatchNorm", "LayerNorm", "GroupNorm", "RMSNorm"),
    }
)
PRELU_WORDS = ("w", "a")
"""A PReLU's slope in MindSpore: `w` inside a network, `a` when the cell stands alone or in older versions."""

PARTS = {"dense1": "linear1", "dense2": "linear2"}
"""Parts of MindSpore's transformer layers → PyTorch's."""

NO_COUNTERPART = frozenset({"num_batches_tracked", "global_step"})
"""Kept by one framework and unknown to the other; nothing is computed from them."""


def torch_leaves() -> frozenset[str]:
    """PyTorch's words that MindSpore says otherwise for some layer."""
    return frozenset(LEAVES.values())


def torch_leaf(leaf: str, layer: str = "") -> str:
    """The last word as PyTorch says it.

    >>> torch_leaf("moving_variance")
    'running_var'
    """
    if leaf in PRELU_WORDS and layer in ("", "PReLU"):
        return "weight"
    return LEAVES.get(leaf, leaf)


def mindspore_leaf(leaf: str, layer: str, shape: tuple[int, ...]) -> str:
    """The last word as MindSpore says it, for a layer of this class.

    >>> mindspore_leaf("weight", "BatchNorm2d", (8,))
    'gamma'
    """
    if layer in NORMS:
        back = {theirs: ours for ours, theirs in LEAVES.items() if ours != "embedding_table"}
        return back.get(leaf, leaf)
    if leaf == "weight" and layer == "Embedding":
        return "embedding_table"
    if leaf == "weight" and layer == "PReLU":
        return "w"
    return leaf


def path_words(path: str) -> tuple[str, ...]:
    """A layer's path in one spelling: wrappers dropped, parts of transformer layers by PyTorch's names."""
    if not path:
        return ()
    words = canonical(f"{path}.weight").split(".")[:-1]
    return tuple(PARTS.get(word, word) for word in words)
