"""What a comparison says: verdicts of single pairs, the story, the table, the JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from rich.console import Console

from misstep.compare.judge.measures import measure
from misstep.compare.layers import diff
from misstep.compare.loss_logs import read_loss_log
from misstep.compare.losses import compare_losses
from misstep.compare.report import as_json, render, sayable
from misstep.errors import CompareError
from misstep.store.foreign.source import ArraySource

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 16)).astype(np.float32)


def test_measures_agree_with_numpy() -> None:
    other = X + RNG.standard_normal(X.shape).astype(np.float32) * 1e-3
    found, a, b = measure(X, other), X.astype(float), other.astype(float)
    assert found.max_abs == pytest.approx(np.abs(a - b).max())
    assert found.rmse == pytest.approx(np.sqrt(((a - b) ** 2).mean()))
    assert found.relative == pytest.approx(np.linalg.norm(a - b) / max(np.linalg.norm(a), np.linalg.norm(b)))
    assert found.cosine == pytest.approx((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))
    assert found.first_index(X.shape) == (0, 0)


def test_two_shapes_cannot_be_measured() -> None:
    with pytest.raises(CompareError, match=r"shapes differ: \(8, 16\) and \(16, 8\)"):
        measure(X, X.T)


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        (X, X.copy(), "identical"),
        (X, X + X * np.float32(1e-7), "noise"),
        (X, X * np.float32(1.01), "different"),
        (X, X[:4], "shape"),
        (X, X.astype(np.float64), "noise"),
        (np.arange(4), np.arange(4).astype(np.int32), "identical"),
        (np.arange(4), np.arange(4) + 1, "different"),
        (np.where(X > 2, np.nan, X), np.where(X > 2, np.nan, X), "identical"),
        (X, np.where(X > 2, np.nan, X).astype(np.float32), "different"),
        (np.zeros(3, np.float32), np.zeros(3, np.float32), "identical"),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), "identical"),
        (X.astype(ml_dtypes.bfloat16), (X * 1.001).astype(ml_dtypes.bfloat16), "noise"),
    ],
    ids=[
        "equal",
        "rounding",
        "one percent",
        "shape",
        "float64",
        "int32",
        "integers",
        "same NaN",
        "new NaN",
        "zeros",
        "empty",
        "bfloat16",
    ],
)
def test_one_pair_has_one_verdict(left: np.ndarray, right: np.ndarray, verdict: str) -> None:
    found = diff({"x:output": left}, {"x:output": right})
    expected = "identical" if verdict == "noise" and left.dtype != right.dtype else verdict
    assert found.rows[0].verdict == expected


def test_one_tensor_in_another_type_among_many_is_a_difference_of_type() -> None:
    left = {f"l{at}:output": X for at in range(4)}
    right: dict[str, Any] = dict(left) | {"l2:output": X.astype(np.float16)}
    found = diff(left, right)
    assert found.cause is not None
    assert (found.cause.name, found.cause.verdict) == ("l2:output", "dtype")
    assert found.cause.note == "float32 against float16; the right side is rounded to float16"


def test_without_captured_inputs_the_first_output_that_differs_is_the_cause() -> None:
    left = {f"l{at}:output": X * (at + 1) for at in range(5)}
    right = {name: value * np.float32(1.0 if int(name[1]) < 2 else 1.5) for name, value in left.items()}
    found = diff(left, right)
    assert [row.part for row in found.rows] == ["", "", "cause", "consequence", "consequence"]


def test_a_second_independent_fault_is_a_second_cause() -> None:
    left = {"a:input": X, "a:output": X * 2, "b:input": X + 1, "b:output": X * 3}
    right = dict(left) | {"a:output": X * np.float32(2.1), "b:output": X * np.float32(3.3)}
    assert [row.name for row in diff(left, right).causes] == ["a:output", "b:output"]


def test_the_outermost_module_called_by_its_type_is_no_cause_of_its_own() -> None:
    def run(factor: float) -> ArraySource:
        arrays = {
            "Net:input": X,
            "fc:input": X,
            "fc:output": X * np.float32(factor),
            "Net:output": X * np.float32(factor),
        }
        return ArraySource(arrays, types={"Net": "Net", "fc": "Linear"})

    found = diff(run(1.0), run(1.5))
    assert [(row.name, row.part) for row in found.rows if row.part] == [
        ("fc:output", "cause"),
        ("Net:output", "consequence"),
    ]


def test_the_story_reads_as_a_person_would_tell_it() -> None:
    left = {
        "conv:output": X,
        "layer1.0.bn1:input": X,
        "layer1.0.bn1.weight:param": np.ones(16, np.float32),
        "layer1.0.bn1:output": X * 2,
        "fc:input": X * 2,
        "fc:output": X * 4,
    }
    right = dict(left) | {
        name: left[name] * np.float32(1.09) for name in ("layer1.0.bn1:output", "fc:input", "fc:output")
    }
    assert diff(left, right).summary() == (
        "3 of 6 tensors match; first difference in execution order: layer1.0.bn1 output, relative 0.083, "
        "far above what float32 noise explains (expected ≤ 4.3e-6), the right side is 1.09 times the left; "
        "its input was equal; its weight equals; so a setting or the formula of the node differs; "
        "2 later rows are consequences"
    )


def test_a_missing_buffer_of_one_framework_is_listed_but_spoils_nothing() -> None:
    found = diff({"bn.weight": X, "bn.num_batches_tracked": np.asarray(3)}, {"bn.gamma": X})
    assert found
    assert [entry.name for entry in found.only_left] == ["bn.num_batches_tracked"]


def test_a_missing_parameter_is_not_close() -> None:
    found = diff({"fc.weight": X, "fc.bias": X[0]}, {"fc.weight": X})
    assert not found
    assert found.counts == {"identical": 1, "missing": 1}


def test_json_is_strict_and_complete() -> None:
    right = X.copy()
    right[2, 3] = np.inf
    found = diff({"a:output": X, "b:output": X}, {"a:output": X, "b:output": right})
    text = json.dumps(as_json(found), allow_nan=False)
    said = json.loads(text)
    assert (said["close"], said["counts"], said["cause"]["name"]) == (
        False,
        {"identical": 1, "different": 1},
        "b:output",
    )
    assert said["rows"][1]["first_index"] == [2, 3]
    assert sayable([math.nan, math.inf, -math.inf, 1.5]) == ["NaN", "Infinity", "-Infinity", 1.5]


def test_the_table_opens_at_the_first_difference() -> None:
    left = {f"layer{at}:output": X for at in range(60)}
    right = {name: value if at < 40 else value * np.float32(2) for at, (name, value) in enumerate(left.items())}
    console = Console(record=True, width=160)
    console.print(render(diff(left, right)))
    text = console.export_text()
    assert "40 of 60 tensors match" in text
    marked = next(line for line in text.splitlines() if line.startswith("►"))
    assert marked.split()[1] == "layer40:output"
    assert "layer2:output" not in text
    assert "more rows; --all shows every one" in text


@pytest.mark.parametrize(
    ("right", "reason", "first"),
    [
        ([1.0, 0.9, 0.8, 0.7], "equal", None),
        ([1.0005, 0.9, 0.8, 0.7], "equal", None),
        ([1.01, 0.9, 0.8, 0.7], "forward", 1),
        ([1.0, 0.91, 0.8, 0.7], "backward", 2),
        ([1.0, 0.9, 0.8, math.nan], "later", 4),
    ],
)
def test_where_two_loss_curves_part_says_where_to_look(right: list[float], reason: str, first: int | None) -> None:
    found = compare_losses([1.0, 0.9, 0.8, 0.7], right)
    assert (found.reason, found.first_step, bool(found)) == (reason, first, first is None)
    assert ("equal" in found.summary() or "agree" in found.summary()) == (reason != "forward")


def test_losses_are_read_from_logs(tmp_path: Any) -> None:
    log = tmp_path / "train.log"
    log.write_text("epoch: 1 step: 10, loss is 2.5\nnoise\nepoch: 1 step: 20, loss is 1.25e0\nvalid accuracy 3\n")
    assert read_loss_log(log) == {10: 2.5, 20: 1.25}
    plain = tmp_path / "plain.log"
    plain.write_text("train_loss=3.0\ntrain_loss=nan\n")
    assert str(read_loss_log(plain)) == "{1: 3.0, 2: nan}"
    with pytest.raises(CompareError, match="--tag"):
        read_loss_log(log, tag="perplexity")
