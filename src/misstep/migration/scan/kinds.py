"""What an expression of a Python file is, as far as a migration cares: a tensor, a layer, a number, a name."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import Literal

What = Literal["name", "tensor", "layer", "network", "optimizer", "schedule", "object", "python", "own", "unknown"]


@dataclass(frozen=True, slots=True)
class Kind:
    """`name` is the dotted name for a name, a layer's or an object's class, and the type for Python's own values."""

    what: What
    name: str = ""

    @property
    def known(self) -> bool:
        return self.what != "unknown"


UNKNOWN, TENSOR, PYTHON, OWN, NETWORK = Kind("unknown"), Kind("tensor"), Kind("python"), Kind("own"), Kind("network")

USUAL: dict[str, Kind] = {
    **dict.fromkeys(("optimizer", "optim", "opt"), Kind("optimizer")),
    **dict.fromkeys(("scheduler", "lr_scheduler"), Kind("schedule")),
    **dict.fromkeys(("model", "net", "network", "module"), NETWORK),
    **dict.fromkeys(("criterion", "loss_fn", "loss_func"), Kind("layer")),
    **dict.fromkeys(("device", "config", "args", "epoch"), PYTHON),
}
"""What parameters of these names are, where nothing else is said."""


def usual(name: str) -> Kind:
    """What a parameter of this name usually is."""
    if name.endswith("loader"):
        return Kind("object", "torch.utils.data.DataLoader")
    return USUAL.get(name, UNKNOWN)


FRAMEWORKS = ("torch", "mindspore")
BUILTINS = frozenset(dir(builtins))
PLAIN_METHODS = frozenset(
    name for one in (str, list, dict, set, tuple, int, float, bytes) for name in dir(one) if not name.startswith("_")
) | {"sum", "mean", "max", "min", "std", "var", "reshape", "astype", "argmax", "numpy", "item", "step", "to", "train"}
"""Methods that a value nobody knows may have without being a tensor."""

_PLAIN_RESULTS = frozenset(
    [
        *("size", "dim", "numel", "nelement", "ndimension", "item", "tolist", "numpy", "is_floating_point", "stride"),
        *("is_contiguous", "is_complex", "data_ptr", "element_size", "get_device", "asnumpy", "storage_offset"),
        *(
            "is_tensor",
            "manual_seed",
            "set_seed",
            "load",
            "save",
            "device",
            "is_grad_enabled",
            "no_grad",
            "enable_grad",
        ),
        *("get_default_dtype", "get_rng_state", "equal", "allclose", "is_available", "device_count"),
    ]
)
"""Functions and methods of frameworks whose result is no tensor."""
_PLAIN_ATTRIBUTES = frozenset(["shape", "ndim", "dtype", "device", "is_cuda", "requires_grad", "itemsize", "name"])


def returned(name: str) -> Kind:
    """What calling a framework's name gives."""
    home, _, word = name.rpartition(".")
    if word in _PLAIN_RESULTS:
        return PYTHON
    if word in ("Parameter", "Tensor", "UninitializedParameter") or name.startswith("torch.Tensor."):
        return TENSOR
    if word[:1].isupper():
        if "lr_scheduler" in home:
            return Kind("schedule", name)
        if "optim" in home.split(".") or (home == "mindspore.nn" and word in _OPTIMIZERS):
            return Kind("optimizer", name)
        if ".nn" in home and not home.endswith("functional"):
            return Kind("layer", name)
        return Kind("object", name)
    if home.startswith(("torch.utils", "torch.cuda", "torch.backends", "torch.distributed", "torch.jit")):
        return Kind("object", name)
    return TENSOR


_OPTIMIZERS = frozenset(["SGD", "Adam", "Momentum", "AdamWeightDecay", "RMSProp", "Adagrad", "Lamb", "LARS", "FTRL"])


def attribute(base: Kind, word: str) -> Kind:
    """What `base.word` is."""
    if base.what == "name":
        return Kind("name", f"{base.name}.{word}")
    if base.what == "tensor":
        return PYTHON if word in _PLAIN_ATTRIBUTES else TENSOR
    if base.what in ("layer", "network"):
        return TENSOR if word in ("weight", "bias") else UNKNOWN
    if base.what in ("object", "optimizer", "schedule"):
        return Kind("object", f"{base.name}.{word}")
    return base if base.what == "python" else UNKNOWN


def literal(node: ast.expr) -> Kind | None:
    """The kind of a value that is written out."""
    if isinstance(node, ast.Constant):
        return Kind("python", type(node.value).__name__) if node.value is not None else None
    if isinstance(node, ast.JoinedStr):
        return Kind("python", "str")
    if isinstance(node, ast.List | ast.ListComp):
        return Kind("python", "list")
    if isinstance(node, ast.Dict | ast.DictComp):
        return Kind("python", "dict")
    if isinstance(node, ast.Set | ast.SetComp | ast.GeneratorExp | ast.Lambda):
        return PYTHON
    return None


def annotated(node: ast.expr | None) -> Kind | None:
    """What an annotation promises; None when it says nothing we know."""
    if node is None:
        return None
    text = ast.unparse(node).replace("Optional[", "").replace('"', "").rstrip("]").removesuffix(" | None")
    word = text.rpartition(".")[2]
    if word in ("Tensor", "FloatTensor", "LongTensor", "BoolTensor"):
        return TENSOR
    if word in ("int", "float", "str", "bool"):
        return Kind("python", word)
    if word in ("Module", "Cell"):
        return NETWORK
    return PYTHON if word.partition("[")[0] in ("list", "tuple", "dict", "List", "Tuple", "Dict", "Sequence") else None


def joined(one: Kind, other: Kind) -> Kind:
    """What either of two branches gives: what is known of one, where the other says nothing."""
    if one == other or not other.known:
        return one
    if not one.known:
        return other
    return TENSOR if TENSOR in (one, other) else one
