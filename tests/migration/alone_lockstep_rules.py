"""The rules of `lockstep/rules.py` proven by numbers: equal arguments compute the same, a changed one is named."""

from __future__ import annotations

import mindspore.nn as mnn
import numpy as np
import pytest
import torch.nn as tnn

from misstep.migration.frameworks.base import half_of
from misstep.migration.lockstep.rules import LAYERS, OPTIMIZERS
from misstep.migration.lockstep.stages import Report, check
from misstep.migration.sources import Batch, Built

pytestmark = pytest.mark.mindspore

CASES = [
    ("Linear(6, 4)", "Dense(6, 4)", (3, 6)),
    ("Conv1d(3, 4, 3, padding=1)", "Conv1d(3, 4, 3, pad_mode='pad', padding=1, has_bias=True)", (2, 3, 8)),
    ("Conv2d(3, 4, 3, stride=2)", "Conv2d(3, 4, 3, stride=2, pad_mode='valid', has_bias=True)", (2, 3, 8, 8)),
    ("Conv2d(3, 4, 3, padding=1)", "Conv2d(3, 4, 3, has_bias=True)", (2, 3, 8, 8)),
    ("Conv2d(3, 4, 3, padding='same')", "Conv2d(3, 4, 3, has_bias=True)", (2, 3, 8, 8)),
    ("Conv3d(2, 3, 3, padding=1)", "Conv3d(2, 3, 3, pad_mode='pad', padding=1, has_bias=True)", (1, 2, 5, 5, 5)),
    ("ConvTranspose2d(3, 4, 2, 2)", "Conv2dTranspose(3, 4, 2, 2, pad_mode='valid', has_bias=True)", (2, 3, 4, 4)),
    ("BatchNorm1d(6, momentum=0.3)", "BatchNorm1d(6, momentum=0.7)", (5, 6)),
    ("BatchNorm2d(3)", "BatchNorm2d(3)", (4, 3, 5, 5)),
    ("LayerNorm(6)", "LayerNorm((6,), epsilon=1e-5)", (4, 6)),
    ("GroupNorm(2, 6)", "GroupNorm(2, 6)", (2, 6, 4, 4)),
    ("GELU()", "GELU(approximate=False)", (4, 6)),
    ("GELU(approximate='tanh')", "GELU()", (4, 6)),
    ("LeakyReLU()", "LeakyReLU(0.01)", (4, 6)),
    ("ELU()", "ELU()", (4, 6)),
    ("CELU(1.5)", "CELU(1.5)", (4, 6)),
    ("Hardtanh()", "Hardtanh()", (4, 6)),
    ("Softmax(dim=-1)", "Softmax()", (4, 6)),
    ("LogSoftmax(dim=-1)", "LogSoftmax()", (4, 6)),
    ("MaxPool1d(2)", "MaxPool1d(2, 2)", (2, 3, 8)),
    ("MaxPool2d(2)", "MaxPool2d(2, 2)", (2, 3, 8, 8)),
    ("AvgPool1d(2)", "AvgPool1d(2, 2)", (2, 3, 8)),
    ("AvgPool2d(2)", "AvgPool2d(2, 2)", (2, 3, 8, 8)),
    ("Dropout(0.4)", "Dropout(p=0.4)", (40, 6)),
    ("Dropout(0.4)", "Dropout(keep_prob=0.6)", (40, 6)),
    ("Flatten()", "Flatten()", (2, 3, 4)),
    ("PixelShuffle(2)", "PixelShuffle(2)", (1, 4, 3, 3)),
    ("TransformerEncoderLayer(8, 2, 16)", "TransformerEncoderLayer(8, 2, 16)", (5, 2, 8)),
]
WRONG = [
    ("Conv2d(3, 4, 3, dilation=2)", "Conv2d(3, 4, 3, pad_mode='valid', has_bias=True)", (2, 3, 8, 8), "dilation"),
    ("Conv2d(3, 4, 3, stride=2)", "Conv2d(3, 4, 3, pad_mode='valid', has_bias=True)", (2, 3, 8, 8), "stride"),
    ("BatchNorm2d(3, eps=1e-2)", "BatchNorm2d(3)", (4, 3, 5, 5), "eps"),
    ("BatchNorm2d(3)", "BatchNorm2d(3, momentum=0.1)", (4, 3, 5, 5), "momentum"),
    ("GroupNorm(2, 6)", "GroupNorm(3, 6)", (2, 6, 4, 4), "num_groups"),
    ("GELU()", "GELU()", (4, 6), "approximate"),
    ("MaxPool2d(3, 2, ceil_mode=True)", "MaxPool2d(3, 2)", (2, 3, 8, 8), "ceil_mode"),
    ("Dropout(0.4)", "Dropout(0.4)", (40, 6), "p"),
    ("Softmax(dim=0)", "Softmax()", (4, 6), "axis"),
    ("TransformerEncoderLayer(8, 2, norm_first=True)", "TransformerEncoderLayer(8, 2)", (5, 2, 8), "norm_first"),
]


def of(torch: str, mindspore: str, shape: tuple[int, ...]) -> Report:
    left, right = half_of("torch"), half_of("mindspore")
    with left.recording():
        ours = tnn.Sequential(eval(f"tnn.{torch}", {"tnn": tnn}))
    with right.recording():
        theirs = mnn.SequentialCell(eval(f"mnn.{mindspore}", {"mnn": mnn}))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return check(Built(torch, ours, left), Built(mindspore, theirs, right), Batch((x,), (), ()))


@pytest.mark.parametrize(("torch", "mindspore", "shape"), CASES, ids=[f"{a} is {b}" for a, b, _ in CASES])
def test_layers_with_equal_arguments_compute_the_same(torch: str, mindspore: str, shape: tuple[int, ...]) -> None:
    report = of(torch, mindspore, shape)
    assert report.findings == []
    assert torch.partition("(")[0] in LAYERS


@pytest.mark.parametrize(("torch", "mindspore", "shape", "parameter"), WRONG, ids=[f"{a} {d}" for a, _, _, d in WRONG])
def test_an_argument_that_differs_is_named(torch: str, mindspore: str, shape: tuple[int, ...], parameter: str) -> None:
    found = [one.parameter for one in of(torch, mindspore, shape).findings if one.what == "argument"]
    assert found == [parameter]


def test_every_rule_names_arguments_that_exist_in_both_frameworks() -> None:
    import inspect

    import torch

    homes = {**{name: getattr(tnn, name) for name in LAYERS}, **{n: getattr(torch.optim, n) for n in OPTIMIZERS}}
    for name, rule in {**LAYERS, **OPTIMIZERS}.items():
        known = inspect.signature(homes[name].__init__).parameters
        inherited = [p for base in homes[name].__mro__[1:-1] for p in inspect.signature(base.__init__).parameters]
        for one in rule:
            assert one.left_name.partition("[")[0] in {*known, *inherited}, (name, one.left_name)
