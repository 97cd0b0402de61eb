"""How each class of PyTorch is constructed, and what goes in: the samples its counterparts are tried on.

An input is `shape` for floats, `N<shape` for whole numbers below N, `p shape` for probabilities, `± shape` for signs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["layer", "loss", "optimizer", "schedule"]


@dataclass(frozen=True, slots=True)
class Nested:
    """A layer among the arguments of another, spelled the same in both frameworks."""

    name: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One construction, and the inputs of a call."""

    name: str
    kind: Kind
    text: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    inputs: tuple[NDArray[Any], ...]


_IMAGES, _LINES, _VOLUMES, _ROWS = "2 3 8 8", "2 3 8", "1 2 4 4 4", "4 6"
_ACTIVATION: tuple[str, tuple[str, ...]] = (_ROWS, ("",))
_NORM = ("{}", "{}, eps=1e-3", "{}, momentum=0.3", "{}, affine=False", "num_features={}")
_PAIR = "4 6; 4 6"
_REDUCTIONS = ("", "reduction='sum'", "reduction='none'")


def _norm(count: int) -> tuple[str, ...]:
    return tuple(one.format(count) for one in _NORM)


_CONV = (
    "3, 4, 3",
    "3, 4, 3, padding=1",
    "3, 4, 3, 2, 1",
    "3, 4, 3, bias=False",
    "3, 6, 3, groups=3",
    "3, 4, 3, dilation=2",
    "3, 4, 3, padding='same'",
    "3, 4, 3, padding='valid'",
    "in_channels=3, out_channels=4, kernel_size=3, stride=2",
)
_POOL = (
    "2",
    "3, 2",
    "2, 2",
    "2, stride=1",
    "3, 2, 1",
    "3, stride=2, padding=1",
    "kernel_size=2",
    "3, 2, ceil_mode=True",
)
_RNN = (
    "6, 5",
    "6, 5, batch_first=True",
    "6, 5, 2",
    "6, 5, num_layers=2, bidirectional=True",
    "6, 5, bias=False",
    "input_size=6, hidden_size=5",
)
_BLOCK = (
    "8, 2, 16, 0.0",
    "8, 2, dim_feedforward=16, dropout=0.0, batch_first=True",
    "8, 2, 16, 0.0, activation='gelu'",
    "d_model=8, nhead=2, dim_feedforward=16, dropout=0.0, norm_first=True",
    "8, 2, 16, 0.0, layer_norm_eps=1e-3",
)

LAYERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Linear": (_ROWS, ("6, 4", "6, 4, bias=False", "6, 4, False", "in_features=6, out_features=4")),
    "Bilinear": ("4 3; 4 5", ("3, 5, 2", "3, 5, 2, bias=False")),
    "Identity": _ACTIVATION,
    "Flatten": ("2 3 4", ("", "1", "start_dim=1", "0, 1", "start_dim=1, end_dim=-1")),
    "Unflatten": ("2 6", ("1, (2, 3)",)),
    "Conv1d": (_LINES, _CONV),
    "Conv2d": (
        _IMAGES,
        (
            *_CONV,
            "3, 4, (3, 5)",
            "3, 4, (3, 5), padding=(1, 2)",
            "3, 4, 3, stride=(2, 1)",
            "3, 4, (1, 3), (1, 2), (0, 1)",
        ),
    ),
    "Conv3d": ("1 3 5 5 5", (*_CONV[:6], "3, 4, 3, padding=(1, 1, 1)")),
    "ConvTranspose1d": (_LINES, ("3, 4, 2, 2", "3, 4, 4, stride=2, padding=1", "3, 4, 3, bias=False")),
    "ConvTranspose2d": (
        _IMAGES,
        ("3, 4, 2, 2", "3, 4, 4, stride=2, padding=1", "3, 4, 3, bias=False", "3, 4, 3, 2, 1, 1", "3, 6, 2, groups=3"),
    ),
    "ConvTranspose3d": (_VOLUMES, ("2, 3, 2, 2", "2, 3, 3, padding=1")),
    "MaxPool1d": (_LINES, _POOL),
    "MaxPool2d": (_IMAGES, _POOL),
    "MaxPool3d": ("1 2 6 6 6", _POOL),
    "AvgPool1d": (_LINES, (*_POOL, "3, 2, 1, count_include_pad=False")),
    "AvgPool2d": (_IMAGES, (*_POOL, "3, 2, 1, count_include_pad=False")),
    "AvgPool3d": ("1 2 6 6 6", _POOL),
    "AdaptiveAvgPool1d": (_LINES, ("1", "4", "output_size=2")),
    "AdaptiveAvgPool2d": (_IMAGES, ("1", "(1, 1)", "4", "(2, 4)", "output_size=1")),
    "AdaptiveAvgPool3d": ("1 2 4 4 4", ("1", "(1, 2, 2)")),
    "AdaptiveMaxPool1d": (_LINES, ("1", "4")),
    "AdaptiveMaxPool2d": (_IMAGES, ("1", "(1, 1)", "4", "output_size=2")),
    "BatchNorm1d": ("5 6", (*_norm(6), "6, 1e-3, 0.3")),
    "BatchNorm2d": ("4 3 5 5", (*_norm(3), "3, 1e-3, 0.3")),
    "BatchNorm3d": ("4 2 3 3 3", _norm(2)),
    "InstanceNorm1d": ("2 3 8", ("3", "3, affine=True", "3, eps=1e-3")),
    "InstanceNorm2d": (_IMAGES, ("3", "3, affine=True", "3, eps=1e-3")),
    "LayerNorm": (
        "4 3 6",
        (
            "6",
            "(6,)",
            "[3, 6]",
            "(3, 6)",
            "[6]",
            "6, eps=1e-3",
            "normalized_shape=6",
            "6, 1e-6",
            "6, elementwise_affine=False",
        ),
    ),
    "GroupNorm": ("2 6 4 4", ("2, 6", "3, 6, eps=1e-3", "num_groups=2, num_channels=6", "2, 6, affine=False")),
    "RMSNorm": ("4 6", ("6", "6, eps=1e-6")),
    "LocalResponseNorm": (_IMAGES, ("3", "3, 1e-3")),
    "Dropout": ("64 64", ("", "0.4", "p=0.25", "0.5, inplace=True")),
    "Dropout2d": ("32 32 4 4", ("0.4", "p=0.25")),
    "AlphaDropout": ("64 64", ("0.4",)),
    **dict.fromkeys(
        ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid"), (_ROWS, ("", "inplace=True"))
    ),
    **dict.fromkeys(("Sigmoid", "Tanh", "LogSigmoid", "Softsign", "Tanhshrink"), _ACTIVATION),
    "GELU": (_ROWS, ("", "approximate='tanh'", "'tanh'", "approximate='none'")),
    "LeakyReLU": (_ROWS, ("", "0.2", "negative_slope=0.1, inplace=True", "0.2, True")),
    "ELU": (_ROWS, ("", "0.5", "alpha=0.5")),
    "CELU": (_ROWS, ("", "1.5")),
    "PReLU": ("4 3 5 5", ("", "3", "num_parameters=3", "1, 0.1")),
    "RReLU": ("64 64", ("",)),
    "GLU": (_ROWS, ("", "1", "dim=0")),
    "Hardtanh": (_ROWS, ("", "-0.5, 0.5", "min_val=-0.5, max_val=0.5")),
    "Hardshrink": (_ROWS, ("", "0.3", "lambd=0.3")),
    "Softshrink": (_ROWS, ("", "0.3", "lambd=0.3")),
    "Softplus": (_ROWS, ("", "2.0", "beta=2.0, threshold=10.0")),
    "Threshold": (_ROWS, ("0.1, 0.5", "threshold=0.1, value=0.5")),
    "Softmax": (_ROWS, ("-1", "dim=1", "dim=0", "1")),
    "Softmin": (_ROWS, ("-1", "dim=1")),
    "LogSoftmax": (_ROWS, ("-1", "dim=1", "dim=0")),
    "Softmax2d": (_IMAGES, ("",)),
    "Embedding": (
        "9<4 5",
        ("9, 6", "9, 6, padding_idx=0", "num_embeddings=9, embedding_dim=6", "9, 6, 0"),
    ),
    "PixelShuffle": ("1 8 3 3", ("2", "upscale_factor=2")),
    "PixelUnshuffle": ("1 2 4 4", ("2",)),
    "ChannelShuffle": ("1 6 4 4", ("3",)),
    "Upsample": (
        _IMAGES,
        (
            "scale_factor=2",
            "scale_factor=2, mode='bilinear'",
            "scale_factor=2, mode='bilinear', align_corners=True",
            "size=(4, 4)",
            "size=(16, 16), mode='bilinear', align_corners=False",
        ),
    ),
    "UpsamplingNearest2d": (_IMAGES, ("scale_factor=2", "size=(4, 4)")),
    "UpsamplingBilinear2d": (_IMAGES, ("scale_factor=2", "size=(4, 4)")),
    **{f"{kind}Pad1d": (_LINES, ("2", "(1, 2)")) for kind in ("Zero", "Reflection", "Replication")},
    **{f"{kind}Pad2d": (_IMAGES, ("2", "(1, 2, 0, 1)")) for kind in ("Zero", "Reflection", "Replication")},
    "ConstantPad1d": (_LINES, ("2, 0.5",)),
    "ConstantPad2d": (_IMAGES, ("2, 0.5", "(1, 2, 0, 1), 0.5")),
    "Unfold": ("1 3 6 6", ("2", "3, stride=1", "2, 1, 0, 2")),
    "Fold": ("1 12 9", ("(4, 4), (2, 2)",)),
    "LSTM": ("4 3 6", _RNN),
    "GRU": ("4 3 6", _RNN),
    "RNN": ("4 3 6", _RNN),
    "LSTMCell": ("3 6", ("6, 5",)),
    "GRUCell": ("3 6", ("6, 5",)),
    "RNNCell": ("3 6", ("6, 5",)),
    "MultiheadAttention": (
        "4 2 8; 4 2 8; 4 2 8",
        ("8, 2", "8, 2, bias=False", "embed_dim=8, num_heads=2", "8, 2, batch_first=True"),
    ),
    "TransformerEncoderLayer": ("4 2 8", _BLOCK),
    "TransformerDecoderLayer": ("4 2 8; 4 2 8", _BLOCK),
    "TransformerEncoder": (
        "4 2 8",
        ("nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2", "nn.TransformerEncoderLayer(8, 2, 16, 0.0), num_layers=2"),
    ),
    "TransformerDecoder": ("4 2 8; 4 2 8", ("nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2",)),
    "Transformer": ("4 2 8; 3 2 8", ("8, 2, 1, 1, 16, 0.0",)),
    "CosineSimilarity": (_PAIR, ("", "1", "dim=0")),
    "PairwiseDistance": (_PAIR, ("", "1.0")),
    "Sequential": (_ROWS, ("nn.ReLU(), nn.Tanh()",)),
}

LOSSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "CrossEntropyLoss": (
        "5 4; 4<5",
        ("", "reduction='sum'", "reduction='none'", "label_smoothing=0.1", "ignore_index=2"),
    ),
    "NLLLoss": ("5 4; 4<5", (*_REDUCTIONS, "ignore_index=2")),
    "MSELoss": (_PAIR, _REDUCTIONS),
    "L1Loss": (_PAIR, _REDUCTIONS),
    "SmoothL1Loss": (_PAIR, (*_REDUCTIONS, "beta=0.5")),
    "HuberLoss": (_PAIR, (*_REDUCTIONS, "delta=0.5")),
    "BCELoss": ("p 4 6; p 4 6", _REDUCTIONS),
    "BCEWithLogitsLoss": ("4 6; p 4 6", _REDUCTIONS),
    "KLDivLoss": (
        "4 6; p 4 6",
        ("", "reduction='batchmean'", "reduction='sum'", "reduction='none'", "log_target=True"),
    ),
    "PoissonNLLLoss": ("4 6; p 4 6", ("", "log_input=True", "reduction='sum'")),
    "GaussianNLLLoss": ("4 6; 4 6; p 4 6", ("", "full=True")),
    "SoftMarginLoss": ("4 6; ± 4 6", _REDUCTIONS),
    "HingeEmbeddingLoss": ("4 6; ± 4 6", ("", "margin=0.5", "reduction='sum'")),
    "MultiLabelSoftMarginLoss": ("4 6; p 4 6", ("", "reduction='sum'")),
    "MultiMarginLoss": ("5 4; 4<5", ("", "margin=0.5")),
    "MarginRankingLoss": ("6; 6; ± 6", ("", "margin=0.5")),
    "CosineEmbeddingLoss": ("4 6; 4 6; ± 4", ("", "margin=0.2")),
    "TripletMarginLoss": ("4 6; 4 6; 4 6", ("", "margin=0.5", "p=1")),
}

OPTIMIZERS: dict[str, tuple[str, ...]] = {
    "SGD": (
        "lr=0.1",
        "0.1",
        "lr=0.1, momentum=0.9",
        "lr=0.1, momentum=0.9, weight_decay=0.01",
        "lr=0.1, momentum=0.9, nesterov=True",
        "lr=0.1, momentum=0.9, dampening=0.1",
    ),
    "Adam": (
        "",
        "lr=0.01",
        "0.01",
        "lr=0.01, betas=(0.8, 0.9)",
        "lr=0.01, eps=1e-5",
        "lr=0.01, weight_decay=0.1",
        "amsgrad=True",
    ),
    "AdamW": ("", "lr=0.01", "lr=0.01, weight_decay=0.1", "lr=0.01, betas=(0.8, 0.9), eps=1e-6"),
    "RMSprop": ("", "lr=0.01", "lr=0.01, alpha=0.9", "lr=0.01, momentum=0.9", "lr=0.01, centered=True"),
    "Adagrad": ("", "lr=0.1", "lr=0.1, weight_decay=0.1"),
    "Adadelta": ("", "lr=0.5", "rho=0.8"),
    "Adamax": ("", "lr=0.01"),
    "NAdam": ("", "lr=0.01"),
    "RAdam": ("", "lr=0.01"),
    "Rprop": ("", "lr=0.01"),
    "ASGD": ("", "lr=0.1"),
}

SCHEDULES: dict[str, tuple[str, ...]] = {
    "StepLR": ("2", "step_size=2, gamma=0.5", "3, 0.5"),
    "MultiStepLR": ("[2, 5]", "milestones=[2, 4], gamma=0.5"),
    "ExponentialLR": ("0.9", "gamma=0.5"),
    "CosineAnnealingLR": ("8", "T_max=6, eta_min=0.01"),
    "CosineAnnealingWarmRestarts": ("3", "T_0=2, T_mult=2", "3, eta_min=0.01"),
    "LinearLR": ("", "start_factor=0.5, total_iters=4"),
    "ConstantLR": ("", "factor=0.5, total_iters=3"),
    "PolynomialLR": ("", "total_iters=6, power=2.0"),
    "CyclicLR": ("0.01, 0.1, step_size_up=3, cycle_momentum=False",),
    "OneCycleLR": ("0.1, total_steps=10", "max_lr=0.1, total_steps=10, pct_start=0.5"),
}


def kind_of(name: str) -> Kind | Literal["function"]:
    """What a name of PyTorch is: classes begin with a capital and live in three places."""
    home, _, word = name.rpartition(".")
    if not word[:1].isupper():
        return "function"
    kinds: dict[str, Kind] = {"torch.optim": "optimizer", "torch.optim.lr_scheduler": "schedule"}
    if home == "torch.nn":
        return "loss" if word.endswith("Loss") else "layer"
    return kinds.get(home, "function")


def recipes(name: str) -> list[Recipe]:
    """The constructions of one class."""
    home, _, word = name.rpartition(".")
    if home == "torch.optim":
        return [_recipe(word, "optimizer", text, "4 6") for text in OPTIMIZERS.get(word, ())]
    if home == "torch.optim.lr_scheduler":
        return [_recipe(word, "schedule", text, "4 6") for text in SCHEDULES.get(word, ())]
    kind: Kind = "layer" if word in LAYERS else "loss"
    shapes, texts = (LAYERS | LOSSES).get(word, ("", ()))
    return [_recipe(word, kind, text, shapes) for text in texts]


def _recipe(word: str, kind: Kind, text: str, shapes: str) -> Recipe:
    args, keywords = _arguments(ast.parse(f"f({text})", mode="eval").body)
    draw = np.random.default_rng(11)
    return Recipe(word, kind, text, args, keywords, tuple(_array(one.strip(), draw) for one in shapes.split(";")))


def _arguments(call: ast.expr) -> tuple[tuple[Any, ...], dict[str, Any]]:
    assert isinstance(call, ast.Call)
    return tuple(_value(one) for one in call.args), {one.arg or "": _value(one.value) for one in call.keywords}


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Attribute)
        return Nested(node.func.attr, *_arguments(node))
    return ast.literal_eval(node)


def _array(text: str, draw: np.random.Generator) -> NDArray[Any]:
    if "<" in text:
        high, _, shape = text.partition("<")
        return draw.integers(0, int(high), _shape(shape))
    if text.startswith("p "):
        return draw.uniform(0.05, 0.95, _shape(text[2:])).astype(np.float32)
    if text.startswith("± "):
        return draw.choice([-1.0, 1.0], _shape(text[2:])).astype(np.float32)
    return draw.standard_normal(_shape(text)).astype(np.float32)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split())
