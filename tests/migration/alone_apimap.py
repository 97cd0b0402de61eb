"""The map of calls against both frameworks: what it calls equivalent is executed again, a wrong pair is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from misstep.migration.apimap.classes import verify as classes
from misstep.migration.apimap.classes.recipes import kind_of
from misstep.migration.apimap.functions import torch_samples, verify
from misstep.migration.apimap.table import load
from misstep.migration.apimap.values import Tensorlike, compare

pytestmark = pytest.mark.mindspore

EQUIVALENT = sorted(one.name for one in load().entries.values() if one.verdict == "equivalent")
FUNCTIONS = [name for name in EQUIVALENT if kind_of(name) == "function"]
SAMPLE = random.Random(15).sample(FUNCTIONS, 40)
CLASSES = random.Random(16).sample([name for name in EQUIVALENT if name not in FUNCTIONS], 6)


@pytest.mark.parametrize("name", SAMPLE)
def test_what_the_map_calls_equivalent_passes_again(name: str) -> None:
    known = load().entries[name].ways[0]
    prepared = verify.prepare(name, torch_samples.samples(name))
    again = verify.ways(name, prepared, known.rewrite.target)
    best = max(again, key=lambda way: (way.rewrite.verbatim, way.passed))
    assert best.rewrite.verbatim
    assert (best.passed > 0, best.failed, best.rough) == (True, 0, 0)
    assert best.gradient in ("", "same")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("torch.sin", "mindspore.ops.cos"),
        ("torch.floor", "mindspore.ops.ceil"),
        ("torch.sum", "mindspore.ops.mean"),
        ("torch.nn.functional.relu", "mindspore.ops.relu6"),
    ],
)
def test_a_planted_wrong_pair_fails(name: str, target: str) -> None:
    prepared = verify.prepare(name, torch_samples.samples(name))
    assert prepared
    found = verify.ways(name, prepared, target)
    assert all(way.failed for way in found), found


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_the_map_calls_equivalent_passes_again(name: str) -> None:
    again = classes.ways(name, load().entries[name].ways[0].rewrite.target)
    assert any(way.rewrite.verbatim and way.passed and not way.failed for way in again)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("torch.nn.ReLU", "mindspore.nn.SiLU"),
        ("torch.nn.L1Loss", "mindspore.nn.MSELoss"),
        ("torch.optim.Adam", "mindspore.experimental.optim.Adamax"),
        ("torch.optim.lr_scheduler.StepLR", "mindspore.experimental.optim.lr_scheduler.ExponentialLR"),
    ],
)
def test_a_planted_wrong_class_fails(name: str, target: str) -> None:
    assert all(way.failed for way in classes.ways(name, target))


def test_a_function_computed_less_exactly_is_recorded_as_such() -> None:
    name = "torch.tanh"
    (way,) = verify.ways(name, verify.prepare(name, torch_samples.samples(name)), "mindspore.ops.tanh")
    assert way.rough
    assert way.off > 1e-5


def test_another_shape_type_or_number_of_results_is_no_match() -> None:
    one = Tensorlike(np.ones((2, 3), np.float32))
    assert compare(one, Tensorlike(np.ones((2, 3), np.float32))).same
    assert not compare(one, Tensorlike(np.ones((3, 2), np.float32))).same
    assert not compare(one, Tensorlike(np.ones((2, 3), np.float16))).same
    assert not compare([one, one], [one]).same
    assert not compare(one, Tensorlike(np.full((2, 3), np.nan, np.float32))).same
