"""The map of calls against both frameworks: what it calls equivalent is executed again, a wrong pair is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from misstep.migration.apimap import torch_samples, verify
from misstep.migration.apimap.table import load
from misstep.migration.apimap.values import Tensorlike, compare

pytestmark = pytest.mark.mindspore

EQUIVALENT = sorted(one.name for one in load().entries.values() if one.verdict == "equivalent")
SAMPLE = random.Random(15).sample(EQUIVALENT, 40)


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
