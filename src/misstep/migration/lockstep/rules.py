"""Which argument of a PyTorch layer, loss or optimizer is which of MindSpore's, and what its value becomes.

The defaults of both sides are read from their signatures when a layer is built; this table only says which argument
answers which. `tests/migration/alone_lockstep_rules.py` builds every pair with equal arguments and compares numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Value = Any
Read = Callable[[Mapping[str, Any]], Value]


@dataclass(frozen=True, slots=True)
class Argument:
    """One thing both sides must agree on: how to read it from the constructor's arguments of each."""

    name: str
    """MindSpore's argument, to name in the fix."""
    left: Read
    right: Read
    spell: Callable[[Value], str] = repr
    left_name: str = ""


def same(name: str, theirs: str = "", *, default: Any = None, turn: Callable[[Any], Any] = lambda v: v) -> Argument:
    """An argument that only has another name, or another unit (`turn` makes MindSpore's value of PyTorch's)."""
    return Argument(
        theirs or name,
        lambda args: turn(args.get(name, default)),
        lambda args: args.get(theirs or name, default),
        left_name=name,
    )


def _one_minus(value: Any) -> Any:
    return None if value is None else round(1 - value, 12)


def _flag(value: Any) -> bool:
    return bool(value) if not hasattr(value, "shape") else True


def _keep(args: Mapping[str, Any]) -> Value:
    if args.get("p") is not None:
        return args["p"]
    return _one_minus(args.get("keep_prob"))


def _stride(args: Mapping[str, Any]) -> Value:
    return args.get("stride") if args.get("stride") is not None else args.get("kernel_size")


def _left_padding(args: Mapping[str, Any]) -> Value:
    if args["padding"] in ("same", "valid"):
        return _right_padding({**args, "pad_mode": args["padding"]})
    return args["padding"]


def _right_padding(args: Mapping[str, Any]) -> Value:
    """The padding MindSpore will apply, as one number or one for each axis; 'same' where it depends on the input."""
    mode = args.get("pad_mode", "pad")
    if mode == "valid":
        return 0
    if mode == "pad":
        padding = args.get("padding", 0)
        if isinstance(padding, tuple) and len(padding) in (4, 6) and padding[::2] == padding[1::2]:
            return padding[::2]
        return padding
    size, stride, dilation = (_tuple(args.get(key, 1)) for key in ("kernel_size", "stride", "dilation"))
    wide = max(len(size), len(stride), len(dilation))
    size, stride, dilation = (one * wide if len(one) == 1 else one for one in (size, stride, dilation))
    if any(step != 1 for step in stride) or any(d * (k - 1) % 2 for k, d in zip(size, dilation)):
        return "same"
    return tuple(d * (k - 1) // 2 for k, d in zip(size, dilation))


def _spell_padding(value: Value) -> str:
    if value == "same":
        return "pad_mode='same'"
    return "pad_mode='valid'" if set(_tuple(value)) == {0} else f"pad_mode='pad', padding={value!r}"


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _approximate(args: Mapping[str, Any]) -> Value:
    return args.get("approximate", "none") == "tanh"


def _activation(args: Mapping[str, Any]) -> Value:
    value = args.get("activation", "relu")
    return value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__).lower()


PADDING = Argument("padding", _left_padding, _right_padding, _spell_padding, "padding")
_BIAS = same("bias", "has_bias", turn=_flag)
_CONV = (same("kernel_size"), same("stride"), PADDING, same("dilation"), same("groups", "group"), _BIAS)
_POOL = (
    same("kernel_size"),
    Argument("stride", _stride, lambda args: args.get("stride"), left_name="stride"),
    PADDING,
    same("ceil_mode"),
)
_NORM = (same("eps"), same("momentum", turn=_one_minus), same("affine"))
_RNN = (same("num_layers"), _BIAS, same("batch_first"), same("dropout"), same("bidirectional"))
_TRANSFORMER = (
    same("nhead"),
    same("dropout"),
    Argument("activation", _activation, _activation, left_name="activation"),
    same("layer_norm_eps"),
    same("batch_first"),
    same("norm_first"),
)
_REDUCTION = same("reduction")
_DROPOUT = (Argument("p", lambda args: args.get("p"), _keep, left_name="p"),)

LAYERS: dict[str, tuple[Argument, ...]] = {
    "Linear": (_BIAS,),
    **{f"Conv{n}d": _CONV for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": (*_CONV, same("output_padding")) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": _NORM for n in (1, 2, 3)},
    "LayerNorm": (same("eps", "epsilon"),),
    "GroupNorm": (same("num_groups"), same("eps"), same("affine")),
    "GELU": (Argument("approximate", _approximate, lambda args: args.get("approximate"), left_name="approximate"),),
    "LeakyReLU": (same("negative_slope", "alpha"),),
    "ELU": (same("alpha"),),
    "CELU": (same("alpha"),),
    "Hardtanh": (same("min_val"), same("max_val")),
    "Softmax": (same("dim", "axis"),),
    "LogSoftmax": (same("dim", "axis"),),
    **{f"MaxPool{n}d": _POOL for n in (1, 2, 3)},
    **{f"AvgPool{n}d": (*_POOL, same("count_include_pad")) for n in (1, 2, 3)},
    **dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), _DROPOUT),
    "Embedding": (same("padding_idx"),),
    "LSTM": _RNN,
    "GRU": _RNN,
    "MultiheadAttention": (same("num_heads"), same("dropout"), _BIAS, same("batch_first")),
    "TransformerEncoderLayer": _TRANSFORMER,
    "TransformerDecoderLayer": _TRANSFORMER,
    "Upsample": (same("scale_factor"), same("mode"), same("align_corners", turn=bool)),
    "Flatten": (same("start_dim"), same("end_dim")),
    "PixelShuffle": (same("upscale_factor"),),
    "CrossEntropyLoss": (_REDUCTION, same("ignore_index"), same("label_smoothing")),
    "NLLLoss": (_REDUCTION, same("ignore_index")),
    **dict.fromkeys(("MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss"), (_REDUCTION,)),
    "SmoothL1Loss": (_REDUCTION, same("beta")),
    "HuberLoss": (_REDUCTION, same("delta")),
}
"""By PyTorch's class; MindSpore's class of the layer is whatever was paired with it."""

_RATE, _DECAY = same("lr", "learning_rate"), same("weight_decay", default=0.0)


def _beta(at: int) -> Read:
    return lambda args: args.get("betas", (0.9, 0.999))[at]


_ADAM = (
    _RATE,
    Argument("beta1", _beta(0), lambda args: args.get("beta1"), left_name="betas[0]"),
    Argument("beta2", _beta(1), lambda args: args.get("beta2"), left_name="betas[1]"),
    same("eps"),
    _DECAY,
    same("amsgrad", "use_amsgrad", default=False),
)
OPTIMIZERS: dict[str, tuple[Argument, ...]] = {
    "SGD": (
        _RATE,
        same("momentum", default=0.0),
        _DECAY,
        same("dampening", default=0.0),
        Argument(
            "nesterov",
            lambda args: bool(args.get("nesterov", False)),
            lambda args: bool(args.get("nesterov", args.get("use_nesterov", False))),
            left_name="nesterov",
        ),
    ),
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "RMSprop": (
        _RATE,
        same("alpha", "decay"),
        same("eps", "epsilon"),
        same("momentum", default=0.0),
        same("centered", default=False),
        _DECAY,
    ),
}


def agree(left: Value, right: Value) -> bool:
    """Equal as a layer means it: 3 is (3, 3), 1e-5 is 0.00001."""
    if left is None or right is None:
        return left is right or not (left or right)
    one, other = _tuple(left), _tuple(right)
    if len(one) != len(other):
        wide = max(len(one), len(other))
        one, other = (part * wide if len(part) == 1 else part for part in (one, other))
    return len(one) == len(other) and all(_alike(a, b) for a, b in zip(one, other))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    try:
        return abs(float(one) - float(other)) <= 1e-9 * max(abs(float(one)), abs(float(other)))
    except (TypeError, ValueError):
        return bool(one == other)
