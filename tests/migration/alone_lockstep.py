"""Two networks in lockstep: equal ones pass every stage, and of unequal ones every wrong layer is named in one pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import planted
import pytest
from batches import batch_for, write_batch
from twin_nets import NAMES, Twins

from misstep.errors import MigrationError
from misstep.migration.lockstep.stages import Report, check
from misstep.migration.sources import Batch, build, read_batch

pytestmark = pytest.mark.mindspore
Source = Callable[[str, str], str]


def checked(source: Source, torch: str, mindspore: str, *inputs: np.ndarray, go_on: bool = False) -> Report:
    left, right = build(source("a", torch), "torch"), build(source("b", mindspore), "mindspore")
    return check(left, right, Batch(inputs, (), ()), go_on=go_on)


@pytest.mark.parametrize("name", NAMES)
def test_a_network_written_twice_passes_every_stage(name: str, twins: Twins, tmp_path: Path) -> None:
    left, right = twins(name)
    batch = read_batch(str(write_batch(tmp_path, name)), labelled=left.loss is not None)
    report = check(left, right, batch)
    assert report.findings == []
    assert [stage.name for stage in report.stages] == ["parameters", "model", "inference", "training"]
    assert report.stages[1].checked >= 2


def test_every_planted_default_is_named_with_its_fix_in_one_pass(source: Source) -> None:
    left = build(source("a", planted.TORCH), "torch")
    right = build(source("b", planted.MINDSPORE), "mindspore")
    draw = np.random.default_rng(0)
    inputs = (draw.standard_normal((4, 3, 16, 16)).astype(np.float32),)
    report = check(left, right, Batch(inputs, (draw.random((4, 16), np.float32),), ()), go_on=True)
    named = {(one.layer, one.parameter, one.fix) for one in report.findings if one.what == "argument"}
    assert named == planted.EXPECTED
    model = next(stage for stage in report.stages if stage.name == "model")
    assert [one for one in model.findings if one.what != "argument"] == []


TWO_LAYERS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        return {torch}

def build():
    torch.manual_seed(0)
    return Net()
"""

TWO_CELLS = """
import mindspore as ms
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = nn.Dense(4, 4)
        self.b = nn.Dense(4, 4)

    def construct(self, x):
        return {mindspore}

def build():
    return Net()
"""


def two(source: Source, torch: str, mindspore: str, *, go_on: bool = False) -> Report:
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    texts = TWO_LAYERS.replace("{torch}", torch), TWO_CELLS.replace("{mindspore}", mindspore)
    return checked(source, *texts, x, go_on=go_on)


def test_code_between_layers_is_told_from_the_layers(source: Source) -> None:
    report = two(source, "self.b(torch.sigmoid(self.a(x)))", "self.b(ops.tanh(self.a(x)))")
    assert [(one.what, one.layer) for one in report.findings] == [("between", "b")]


def test_code_after_the_last_layer_is_found(source: Source) -> None:
    report = two(source, "self.b(self.a(x)) * 2", "self.b(self.a(x)) * 3")
    assert [(one.what, one.layer) for one in report.findings] == [("after", "output")]


def test_a_draw_outside_of_layers_is_drawn_again_on_the_other_side(source: Source) -> None:
    torch = "self.b(self.a(x) + torch.randn_like(x)) + torch.nn.functional.dropout(x, 0.5, self.training)"
    mindspore = "self.b(self.a(x) + ops.randn_like(x)) + ops.dropout(x, 0.5, self.training)"
    report = two(source, torch, mindspore)
    assert report.stages[1].status == "passed"


def test_a_layer_that_stops_the_gradient_is_seen_in_training_only(source: Source) -> None:
    report = two(source, "self.b(self.a(x))", "self.b(ops.stop_gradient(self.a(x)))", go_on=True)
    assert [stage.status for stage in report.stages[:3]] == ["passed"] * 3
    assert {(one.what, one.layer) for one in report.findings} == {("gradient", "a.weight"), ("gradient", "a.bias")}


def test_a_missing_bias_is_found_in_the_first_stage_with_its_argument(source: Source) -> None:
    mindspore = TWO_CELLS.replace("{mindspore}", "self.b(self.a(x))").replace("4, 4)", "4, 4, has_bias=False)", 1)
    x = np.ones((3, 4), np.float32)
    report = checked(source, TWO_LAYERS.replace("{torch}", "self.b(self.a(x))"), mindspore, x)
    assert report.failed is report.stages[0]
    assert [(one.layer, one.fix) for one in report.findings] == [("a.bias", "has_bias=True")]


def test_a_batch_the_network_cannot_take_is_named(twins: Twins) -> None:
    left, right = twins("mlp")
    with pytest.raises(MigrationError, match=r"cannot run on inputs of shape \(2, 3\)"):
        check(left, right, Batch((np.ones((2, 3), np.float32),), (), ()))


def test_the_check_leaves_the_weights_of_the_left_network_alone(twins: Twins) -> None:
    left, right = twins("cnn")
    before = [one.fetch().copy() for one in left.half.parameters(left.model) if one.fetch is not None]
    data = batch_for("cnn")
    check(left, right, Batch((data["x"],), (data["label"],), ()))
    after = [one.fetch() for one in left.half.parameters(left.model) if one.fetch is not None]
    assert all(np.array_equal(one, other) for one, other in zip(before, after))
