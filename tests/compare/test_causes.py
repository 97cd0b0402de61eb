"""Which difference led to which: by size, by step, and the facts that are told once."""

from __future__ import annotations

import numpy as np

from misstep.compare.judge.measures import measure, measure_statistics
from misstep.compare.judge.updates import guess
from misstep.compare.layers import diff
from misstep.compare.setups import changed_settings
from misstep.store.foreign.source import ArraySource, Entry, stats_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 16)).astype(np.float32)
W = RNG.standard_normal((16, 16)).astype(np.float32)
NOISE = RNG.standard_normal(X.shape).astype(np.float32)


def chain(first: float, second: float) -> dict[str, np.ndarray]:
    """Two layers; each may go wrong by so much."""
    hidden = X + np.float32(first) * NOISE
    result = hidden * np.float32(2) + np.float32(second) * NOISE
    return {"a:input": X, "a:output": hidden, "b:input": hidden, "b:output": result, "c:input": result}


def test_a_tiny_difference_does_not_hide_a_thousandfold_one_behind_it() -> None:
    found = diff(chain(0, 0), chain(1e-5, 0.3))
    assert [row.name for row in found.causes] == ["a:output", "b:output"]
    assert "a far larger one follows that this does not explain: b output" in found.summary()


def test_what_a_difference_explains_is_no_cause() -> None:
    found = diff(chain(0, 0), chain(1e-3, 1e-3))
    assert [row.name for row in found.causes] == ["a:output"]


def test_rows_are_told_by_step_first() -> None:
    left = {"fc:output@2": X, "fc:output@1": X, "head:output@1": X * 2}
    right = dict(left) | {"fc:output@2": X * np.float32(1.5), "head:output@1": X * 3}
    found = diff(left, right)
    assert [(row.entry.step, row.name) for row in found.rows] == [
        (1, "fc:output"),
        (1, "head:output"),
        (2, "fc:output"),
    ]
    assert "first difference in execution order: step 1, head output" in found.summary()


def test_a_weight_that_changed_by_a_millionth_has_changed() -> None:
    found = diff({"fc.weight": W}, {"fc.weight": W * np.float32(1 + 1e-6)})
    assert [row.verdict for row in found.rows] == ["different"]


def test_a_tensor_of_one_side_alone_is_a_difference() -> None:
    found = diff({"a:output": X, "b:output": X}, {"a:output": X})
    assert not found
    assert [entry.name for entry in found.one_sided] == ["b"]


def test_micro_batches_are_put_together_and_told_once() -> None:
    left = {"fc:input@1": X, "fc:output@1": X * 2, "act:output@1": np.tanh(X)}
    right = {}
    for call, part in enumerate(np.split(X, 4), start=1):
        mark = f"~{call}" if call > 1 else ""
        right |= {f"fc{mark}:input@1": part, f"fc{mark}:output@1": part * 2, f"act{mark}:output@1": np.tanh(part)}
    found = diff(left, right)
    assert found, found.summary()
    assert found.facts == ("the right side takes each batch in 4 parts (micro-batches)",)


def test_a_batch_in_another_order_is_told_as_such() -> None:
    mixed = X[RNG.permutation(len(X))]
    found = diff({"fc:input": X, "fc:output": X @ W}, {"fc:input": mixed, "fc:output": mixed @ W})
    assert [row.name for row in found.causes] == ["fc:input"]
    assert "the same samples in another order" in found.summary()


def test_autocast_is_one_fact() -> None:
    import ml_dtypes

    left: dict[str, np.ndarray] = {"net.weight:param": W}
    for at in range(6):
        left |= {f"l{at}:input": X, f"l{at}:output": X * 2}
    cast = {name: array.astype(ml_dtypes.bfloat16) for name, array in left.items() if name.endswith("output")}
    found = diff(left, left | cast)
    assert found, found.summary()
    assert found.facts == ("the right side computes in bfloat16 where the left computes in float32 (autocast)",)


def test_ranks_are_compared_one_with_one() -> None:
    left = {"fc:output@1#0": X, "fc:output@1#1": X * 2}
    found = diff(left, left | {"fc:output@1#1": X * 5})
    assert found
    assert "2 ranks, rank 0 is compared" in found.summary()
    assert diff(left, {"fc:output@1#0": X * 2}, rank=1, right_rank=0)


def test_an_update_tells_the_learning_rate_from_the_weight_decay() -> None:
    step = RNG.standard_normal(W.shape)
    assert guess(W, step, 2 * step) == "the right side moves 2 times as far: the learning rate"
    assert guess(W, step, step - 0.1 * W) == "the right side's weights shrink by 0.1 more: the weight decay"
    assert "epsilon" in guess(W, step, step + np.sign(step))


def test_statistics_tell_a_difference_from_none() -> None:
    same = measure_statistics(stats_of(X), stats_of(X.copy()))
    apart = measure_statistics(stats_of(X), stats_of(X * np.float32(1.01)))
    assert same.identical
    assert 0.009 < apart.relative <= measure(X, X * np.float32(1.01)).relative * 1.1


class SetUpSource(ArraySource):
    """Arrays with the settings of their nodes."""

    def __init__(self, **settings: dict[str, str]) -> None:
        super().__init__({"bn:input": X, "bn:output": X * 2})
        self._settings = settings

    def settings(self) -> dict[str, dict[str, str]]:
        return self._settings


def test_a_setting_that_differs_is_named_though_every_tensor_is_equal() -> None:
    found = diff(SetUpSource(bn={"momentum": "0.1"}), SetUpSource(bn={"momentum": "0.2"}))
    assert not found
    assert found.summary().endswith("settings differ: bn momentum is 0.1 on the left, 0.2 on the right")


def test_two_spellings_of_one_setting_are_equal() -> None:
    pair = [(Entry("conv"), Entry("conv"))]
    left = SetUpSource(conv={"padding": "(1, 1)", "negative_slope": "0.1", "inplace": "True"})
    right = SetUpSource(conv={"padding": "1", "alpha": "0.1", "inplace": "False"})
    assert changed_settings(left, right, pair) == ()
