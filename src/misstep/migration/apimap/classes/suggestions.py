"""Which class of MindSpore might be which of PyTorch, and what its arguments become. Suggestions only: numbers decide.

A `Turn` is laid over what the signatures already suggest: other values, values made of other arguments, other names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from misstep.migration.apimap.signatures import MISSING

RENAMES: dict[str, tuple[str, ...]] = {
    "Linear": ("Dense",),
    "Bilinear": ("BiDense",),
    "ConvTranspose1d": ("Conv1dTranspose",),
    "ConvTranspose2d": ("Conv2dTranspose",),
    "ConvTranspose3d": ("Conv3dTranspose",),
    "Hardswish": ("HSwish",),
    "Hardsigmoid": ("HSigmoid",),
    "Hardshrink": ("HShrink",),
    "Softshrink": ("SoftShrink",),
    "SELU": ("SeLU",),
    "LocalResponseNorm": ("LRN",),
    "MultiLabelMarginLoss": ("MultilabelMarginLoss",),
    "RMSprop": ("RMSProp",),
    "Adamax": ("AdaMax",),
    "Sequential": ("SequentialCell",),
    "UpsamplingNearest2d": ("Upsample",),
    "UpsamplingBilinear2d": ("Upsample",),
}
"""A class of PyTorch → classes of MindSpore to try before those of the same name."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What to say besides, or instead."""

    add: dict[str, Any] = field(default_factory=dict)
    """MindSpore's parameter → value; MISSING takes back what the signatures would add."""
    fill: dict[str, str] = field(default_factory=dict)
    """MindSpore's parameter → an expression over PyTorch's: stride is the kernel's size where none is given."""
    turn: dict[str, str] = field(default_factory=dict)
    """PyTorch's parameter → what its value becomes, `{0}` being the value."""
    names: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    """PyTorch's parameters that say nothing there."""


_CONV = (
    Turn(add={"pad_mode": "pad"}),
    Turn(add={"pad_mode": "pad"}, turn={"padding": "({0}[0], {0}[0], {0}[1], {0}[1])"}),
    Turn(names={"padding": "pad_mode"}, add={"padding": MISSING}),
)
_POOL = (
    Turn(add={"pad_mode": MISSING, "padding": MISSING}, fill={"stride": "{kernel_size}"}),
    Turn(add={"pad_mode": "pad"}, fill={"stride": "{kernel_size}"}),
)
_NORM = (Turn(add={"momentum": MISSING}, turn={"momentum": "1 - {0}"}),)
_FOUR = (
    Turn(),
    Turn(turn={"padding": "({0}, {0})"}),
    Turn(turn={"padding": "({0}, {0}, {0}, {0})"}),
    Turn(turn={"padding": "({0}, {0}, {0}, {0})"}, add={"value": 0.0}),
    Turn(add={"value": 0.0}),
)

TURNS: dict[str, tuple[Turn, ...]] = {
    **{f"Conv{n}d": _CONV for n in (1, 2)},
    "Conv3d": (
        _CONV[0],
        Turn(add={"pad_mode": "pad"}, turn={"padding": "tuple(one for one in {0} for _ in range(2))"}),
    ),
    **{f"ConvTranspose{n}d": _CONV[:2] for n in (1, 2, 3)},
    **{f"{kind}Pool{n}d": _POOL for kind in ("Max", "Avg") for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": _NORM for n in (1, 2, 3)},
    **{
        f"InstanceNorm{n}d": (Turn(add={"momentum": MISSING, "affine": False}, turn={"momentum": "1 - {0}"}),)
        for n in (1, 2)
    },
    "LayerNorm": (
        Turn(turn={"normalized_shape": "({0},)"}),
        Turn(
            turn={"normalized_shape": "tuple({0})"},
            fill=dict.fromkeys(("begin_norm_axis", "begin_params_axis"), "-len({normalized_shape})"),
        ),
        Turn(turn={"normalized_shape": "({0},) if isinstance({0}, int) else tuple({0})"}),
    ),
    "GELU": (Turn(add={"approximate": False}, turn={"approximate": "{0} == 'tanh'"}),),
    "Dropout": (Turn(names={"p": "p"}),),
    "PReLU": (Turn(names={"num_parameters": "channel", "init": "w"}),),
    "Upsample": (
        Turn(),
        Turn(turn={"scale_factor": "float({0})"}),
        Turn(turn={"scale_factor": "float({0})"}, add={"recompute_scale_factor": True}),
    ),
    "UpsamplingNearest2d": (
        Turn(add={"mode": "nearest"}),
        Turn(add={"mode": "nearest", "recompute_scale_factor": True}, turn={"scale_factor": "float({0})"}),
    ),
    "UpsamplingBilinear2d": (
        Turn(add={"mode": "bilinear", "align_corners": True}),
        Turn(
            add={"mode": "bilinear", "align_corners": True, "recompute_scale_factor": True},
            turn={"scale_factor": "float({0})"},
        ),
    ),
    "Softplus": (Turn(),),
    **{f"{kind}Pad{n}d": _FOUR for kind in ("Zero", "Reflection", "Replication", "Constant") for n in (1, 2)},
    "Adam": (
        Turn(names={"lr": "learning_rate", "amsgrad": "use_amsgrad"}),
        Turn(
            names={"lr": "learning_rate", "amsgrad": "use_amsgrad"},
            drop=("betas",),
            fill={"beta1": "{betas}[0]", "beta2": "{betas}[1]"},
        ),
    ),
}
"""By PyTorch's class: the plain arrangement is tried first, then each of these."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "bias": ("has_bias",),
    "groups": ("group",),
    "in_features": ("in_channels",),
    "out_features": ("out_channels",),
    "in1_features": ("in1_channels",),
    "in2_features": ("in2_channels",),
    "num_embeddings": ("vocab_size",),
    "embedding_dim": ("embedding_size",),
    "lr": ("learning_rate",),
    "negative_slope": ("alpha",),
    "elementwise_affine": ("elementwise_affine",),
    "lambd": ("lambd",),
    "size": ("depth_radius", "size"),
}
"""What constructors call a parameter; beside the words of functions."""

SAYS_NOTHING = (
    *("inplace", "device", "dtype", "foreach", "fused", "capturable", "differentiable", "size_average", "reduce"),
    *("enable_nested_tensor", "mask_check", "verbose"),
)
"""How a thing is computed, or where: the numbers do not know."""


def targets(name: str) -> list[str]:
    """Classes of MindSpore to try for one of PyTorch, in the order of preference."""
    home, _, word = name.rpartition(".")
    words = [*RENAMES.get(word, ()), word]
    places = ["mindspore.nn", "mindspore.mint.nn"]
    if home == "torch.optim":
        places = ["mindspore.experimental.optim", "mindspore.nn"]
    elif home == "torch.optim.lr_scheduler":
        places = ["mindspore.experimental.optim.lr_scheduler"]
    return [f"{place}.{one}" for place in places for one in words]
