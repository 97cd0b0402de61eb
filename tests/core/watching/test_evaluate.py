"""Watchpoints against the rows of a step: who hits, in which order, how often, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tensors import StepRows, Tensor
from misstep.core.address import Address
from misstep.core.stats import ALIAS, INPUTS_BAD, INPUTS_SEEN, TensorStats
from misstep.core.watching.asking import answer
from misstep.core.watching.conditions import CONDITIONS
from misstep.core.watching.evaluate import Evaluator, Needs
from misstep.core.watching.watch import Hit, Reading, Watchpoint
from misstep.core.watching.watchtext import parse_watch, watchpoint

NAN, INF = math.nan, math.inf


def watching(*texts: str) -> Evaluator:
    return Evaluator([parse_watch(text) for text in texts])


def told(hits: Sequence[Hit]) -> list[tuple[int, str, str]]:
    return [(hit.watchpoint, str(hit.address), hit.reason) for hit in hits]


def rows(*tensors: tuple[str, Any], **rest: Any) -> StepRows:
    return StepRows([(name, t if isinstance(t, Tensor) else Tensor(t)) for name, t in tensors], **rest)


def test_a_hit_says_everything() -> None:
    step = rows(("encoder.0:grad", [1e-12, -3e-12]))

    assert step.hits(watching("gradient_vanishing(abs_mean_lt=1e-9)")) == [
        Hit(
            id=1,
            watchpoint=1,
            address=Address.parse("encoder.0:grad@5#0"),
            reason="mean of |gradient| is 2e-12, below 1e-09",
            severity="warning",
            birth="unknown",
            order=0,
            stats=Tensor([1e-12, -3e-12]).stats,
            readings=(Reading("abs_mean_lt", 1e-9, 2e-12, True),),
            condition="gradient_vanishing",
        )
    ]


@pytest.mark.parametrize(
    ("watch", "tensor", "reason"),
    [
        ("overflow", [NAN, NAN, INF, -INF, 1], "2 NaN, 1 +Inf, 1 -Inf of 5"),
        (
            "tensor_too_large(max_gt=3, min_gt=0)",
            [2.0, 4.0],
            "largest value is 4, above 3; smallest value is 2, above 0",
        ),
        ("tensor_too_large(max_gt=3, min_gt=5)", [2.0, 4.0], "largest value is 4, above 3"),
        ("tensor_too_small(mean_lt=9)", [2.0, 4.0], "mean value is 3, below 9"),
        ("all_zero", [0.0], "all elements are zero"),
        ("all_zero(zero_percentage_ge=50)", [0.0, 1], "50% of the elements are zero, at least 50%"),
        ("range(max_min_lt=1)", [1.0, 1.5], "largest minus smallest value is 0.5, below 1"),
        (
            "activation_range(range_start_inclusive=-1, range_end_inclusive=0, range_percentage_gt=99.9)",
            [0.0, 0.0],
            "100% of the elements lie in [-1, 0], above 99.9%",
        ),
        ("max > 3 and nan == 0", [4.0], "max is 4, nan is 0: max > 3 and nan == 0"),
        ("all_zero", [0.0, NAN], "not evaluated: 1 NaN of 2"),
    ],
)
def test_reasons_are_sentences(watch: str, tensor: list[float], reason: str) -> None:
    assert [hit.reason for hit in rows(("fc:output", tensor)).hits(watching(watch))] == [reason]


@pytest.mark.parametrize(
    ("watch", "now", "before", "reason"),
    [
        ("unchanged", [1.0], [1.0], "no element changed by more than rtol 1e-05, atol 1e-08"),
        ("change_too_large", [1.5], [1.0], "mean |change| is 0.5 of mean |weight|, above 0.1"),
        ("unchanged", [1.0], None, "not evaluated: there is no previous value yet"),
        ("previous.max_abs_change > 1", [1.0], None, "not evaluated: there is no previous value yet"),
        ("previous.max_abs_change > 1", [1.0], [4.0], "previous.max_abs_change is 3: previous.max_abs_change > 1"),
    ],
)
def test_reasons_about_changes(watch: str, now: list[float], before: Any, reason: str) -> None:
    assert [hit.reason for hit in rows(("fc.weight:param", Tensor(now, before))).hits(watching(watch))] == [reason]


def test_hits_come_in_execution_order_and_are_numbered_on() -> None:
    step = rows(("a:output", [NAN]), ("b:output", [1.0]), ("c:output", [NAN]))
    evaluator = step.tell(watching("overflow on c", "overflow"))
    head = step.head
    head["order"] = [7, 8, 3]

    def look() -> list[tuple[int, int, str]]:
        hits = evaluator.evaluate(5, 0, head, step.summary, step.evidence)
        return [(hit.id, hit.watchpoint, hit.address.node) for hit in hits]

    assert look() == [(1, 1, "c"), (2, 2, "c"), (3, 2, "a")]
    assert look() == [(4, 1, "c"), (5, 2, "c"), (6, 2, "a")]


def test_statistics_of_a_reordered_row_are_its_own() -> None:
    step = rows(("a:output", [NAN]), ("b:output", [NAN, NAN]))
    head = step.head
    head["order"] = [2, 1]

    hits = step.tell(watching("overflow")).evaluate(5, 0, head, step.summary, step.evidence)

    assert [(hit.address.node, hit.stats.count) for hit in hits] == [("b", 2), ("a", 1)]


@pytest.mark.parametrize(
    ("flags", "birth"),
    [
        (0, "unknown"),
        (INPUTS_SEEN, "origin"),
        (INPUTS_SEEN | INPUTS_BAD, "propagated"),
        (INPUTS_BAD, "propagated"),
        (INPUTS_SEEN | ALIAS, "propagated"),
    ],
)
def test_bad_values_are_born_where_inputs_were_finite(flags: int, birth: str) -> None:
    step = rows(("a:output", [NAN]), ("b:output", [9.0]), flags=[flags, flags])

    hits = step.hits(watching("overflow", "max > 8", "nan"))

    assert [(hit.address.node, hit.birth) for hit in hits] == [("a", birth), ("a", birth), ("b", "unknown")]


def test_conditions_look_at_tensors_of_their_category_by_role() -> None:
    names = ["bn.weight:param", "fc:output", "fc:input", "fc:grad_output", "fc.weight:grad", "bn.mean:buffer", ":loss"]
    step = rows(*[(name if name[0] != ":" else "loss:loss", [NAN]) for name in names])

    def seen(watch: str) -> list[str]:
        return [f"{hit.address.node}:{hit.address.role}" for hit in step.hits(watching(watch))]

    assert seen("weight_overflow") == ["bn.weight:param"]
    assert seen("gradient_exploding") == ["fc:grad_output", "fc.weight:grad"]
    assert len(seen("overflow")) == 7
    assert [hit.address.node for hit in step.hits(watching("activation_range(max_min_gt=1)"))] == ["fc"]


def test_patterns_exceptions_types_and_nodes_narrow_the_view() -> None:
    step = rows(
        ("enc.0:output", [NAN]),
        ("enc.1:output", [NAN]),
        ("enc.1:output.1", [NAN]),
        ("enc.1~2:output", [NAN]),
        ("dec/tanh:output", [NAN]),
        types=["Linear", "Tanh", "Tanh", "Tanh", "aten.tanh_.default"],
    )

    def seen(text: str) -> list[str]:
        return [str(hit.address.at()).partition("@")[0] for hit in step.hits(watching(text))]

    assert seen("overflow on enc.0") == ["enc.0:output"]
    assert seen("overflow on enc.0, dec*") == ["enc.0:output", "dec/tanh:output"]
    assert seen("overflow on enc.*:output.1") == ["enc.1:output.1"]
    assert seen("overflow on enc.1~2") == ["enc.1~2:output"]
    assert seen("overflow but enc.*") == ["dec/tanh:output"]
    assert seen("overflow on enc.* of tanh") == ["enc.1:output", "enc.1:output.1", "enc.1~2:output"]
    assert len(seen("overflow of Tanh")) == 4
    only = Evaluator([watchpoint("overflow", nodes=["enc.0", "dec/tanh"])])
    assert [hit.address.node for hit in step.hits(only)] == ["enc.0", "dec/tanh"]


def test_memory_nobody_wrote_is_not_looked_at() -> None:
    step = rows(("a/empty_like:output", [NAN]), ("a/log:output", [NAN]), types=["aten.empty_like.default", "aten.log"])

    assert [hit.address.node for hit in step.hits(watching("overflow"))] == ["a/log"]


def test_steps_and_ranks_of_a_pattern_say_when_it_looks() -> None:
    step = rows(("a:output", [NAN]), ("b:output", [NAN]))
    evaluator = step.tell(watching("overflow on a@3:4, b#1"))

    def seen(number: int, rank: int) -> list[str]:
        return [hit.address.node for hit in evaluator.evaluate(number, rank, step.head, step.summary)]

    assert seen(2, 0) == []
    assert seen(3, 0) == ["a"]
    assert seen(4, 1) == ["a", "b"]
    assert seen(5, 1) == ["b"]


def test_tensors_that_appear_later_are_looked_at() -> None:
    early, late = rows(("a:output", [NAN])), rows(("a:output", [NAN]), ("b:output", [NAN]))
    evaluator = watching("overflow")

    assert [hit.address.node for hit in early.hits(evaluator)] == ["a"]
    assert [hit.address.node for hit in late.hits(evaluator)] == ["a", "b"]
    assert evaluator.watched(1) == [0, 1]


def test_a_tensor_that_got_another_name_is_matched_again() -> None:
    step = rows(("a:output", [NAN]))
    evaluator = watching("overflow on b")

    assert step.hits(evaluator) == []
    assert [hit.address.node for hit in rows(("b:output", [NAN])).hits(evaluator)] == ["b"]


def test_a_limit_silences_in_execution_order() -> None:
    step = rows(("a:output", [NAN]), ("b:output", [NAN]), ("c:output", [NAN]))
    evaluator = watching("overflow limit 4")

    assert [[hit.address.node for hit in step.hits(evaluator)] for _ in range(3)] == [["a", "b", "c"], ["a"], []]
    assert evaluator.hit_counts() == {1: 4}
    assert evaluator.needs() == Needs()


def test_hits_beyond_the_most_are_counted_only() -> None:
    step = rows(("a:output", [NAN]), ("b:output", [NAN]), ("c:output", [NAN]))
    evaluator = Evaluator([watchpoint("overflow")], most_hits=4)

    assert [len(step.hits(evaluator)) for _ in range(3)] == [3, 1, 0]
    assert evaluator.hit_counts() == {1: 9}


def test_a_question_without_an_answer_is_reported_once_per_tensor() -> None:
    step = rows(("a.weight:param", Tensor([1.0])), ("b.weight:param", Tensor([NAN], [1.0])))
    evaluator = watching("unchanged")

    first, second = step.hits(evaluator), step.hits(evaluator)

    assert [(hit.errors, hit.severity, hit.readings) for hit in first] == [
        (("no_previous",), "info", ()),
        (("nan",), "warning", ()),
    ]
    assert second == []
    assert evaluator.hit_counts() == {1: 0}


def test_a_previous_value_refused_for_memory_says_so() -> None:
    evaluator = watching("unchanged")
    evaluator.refused.add(0)

    hit = rows(("a.weight:param", [1.0])).hits(evaluator)[0]

    assert (hit.errors, hit.reason) == (
        ("out_of_memory",),
        "not evaluated: the previous value did not fit into the memory budget",
    )


def test_disabled_and_removed_watchpoints_are_not_asked() -> None:
    step = rows(("a:output", [NAN]))
    evaluator = Evaluator([watchpoint("overflow", enabled=False), watchpoint("overflow")])

    assert [hit.watchpoint for hit in step.hits(evaluator)] == [2]
    evaluator.remove(2)
    assert step.hits(evaluator) == []
    evaluator.add(watchpoint("overflow", id=1))
    assert [hit.watchpoint for hit in step.hits(evaluator)] == [1]
    assert [watch.id for watch in evaluator.watchpoints] == [1]


def test_each_change_is_measured_once_however_many_ask() -> None:
    measured: list[tuple[float, float]] = []

    class Counting(Tensor):
        def previous_change(self, rtol: float, atol: float) -> Any:
            measured.append((rtol, atol))
            return super().previous_change(rtol, atol)

    step = rows(("a.weight:param", Counting([1.0], [1.0])), ("a:output", Counting([1.0])))
    evaluator = watching("unchanged", "unchanged(rtol=0.1)", "change_too_small", "change_too_large", "WCS on a.*")

    assert [hit.watchpoint for hit in step.hits(evaluator)] == [1, 2, 3, 5]
    assert sorted(measured) == [(1e-5, 1e-8), (0.1, 1e-8)]


def test_needs_are_the_union_over_enabled_watchpoints() -> None:
    step = rows(("a.weight:param", [1.0]), ("a:output", [1.0]), ("b:output", [1.0]))
    span = "range_start_inclusive=0, range_end_inclusive=1, range_percentage_gt=5"

    def needs(*texts: str) -> Needs:
        return step.tell(watching(*texts)).needs()

    assert needs("weight_overflow") == Needs(roles=frozenset({"param"}), level="guard")
    assert needs("unchanged(rtol=0.1)", "max > 3 on a:output") == Needs(
        previous=frozenset({0}), tolerances=((0.1, 1e-8),), roles=frozenset({"param", "output"}), level="module"
    )
    assert needs(f"activation_range({span}) on b").ranges == {2: ((0.0, 1.0),)}
    assert needs("activation_range(max_min_gt=1)").ranges == {}
    assert needs("overflow on */log:output").level == "op"
    assert needs("init").initial
    assert needs("previous.max_abs_change > 1 on b").previous == {2}


def test_a_dry_run_counts_nothing_and_tells_the_price() -> None:
    step = rows(
        ("a.weight:param", Tensor([1.0] * 10, [1.0] * 10)),
        ("b.weight:param", Tensor([1.0], [2.0])),
        ("c:output", [1.0]),
    )
    evaluator = step.tell(watching("overflow"))

    run = evaluator.would_hit(watchpoint("unchanged", enabled=False), step.head, step.summary, step.evidence)

    assert [str(hit.address) for hit in run.hits] == ["a.weight:param@5#0"]
    assert (run.tensors, run.bytes) == (2, 2 * 4 * 11)
    assert step.hits(evaluator) == []
    assert evaluator.needs().previous == frozenset()


def test_an_empty_step_has_no_hits() -> None:
    step = rows(("a:output", [1.0]))
    evaluator = step.tell(watching("overflow", "max > 3", "unchanged"))

    assert evaluator.evaluate(5, 0, step.head[:0], step.summary[:0]) == []
    assert Evaluator().evaluate(5, 0, step.head, step.summary) == []
    assert evaluator.would_hit(watchpoint("overflow"), step.head[:0], step.summary[:0]) == ([], 0, 0)


def test_without_evidence_statistics_are_enough_for_most_questions() -> None:
    step = rows(("a:output", [NAN]), ("a.weight:param", [1.0]))
    evaluator = step.tell(watching("overflow", "unchanged"))

    hits = evaluator.evaluate(5, 0, step.head, step.summary)

    assert [(hit.watchpoint, hit.errors) for hit in hits] == [(1, ()), (2, ("no_previous",))]
    assert isinstance(hits[0].stats, TensorStats)
    assert hits[0].stats.dtype == "float32"


def test_an_expression_reads_each_of_its_comparisons() -> None:
    hit = rows(("a:output", [1.0, 5.0])).hits(watching("max > 3 and mean - 1 < 0 or count == 2"))[0]

    assert hit.readings == (
        Reading("max >", 3.0, 5.0, True),
        Reading("mean - 1 <", 0.0, 2.0, False),
        Reading("count ==", 2.0, 2.0, True),
    )
    assert hit.detail == {"max": 5.0, "mean": 3.0, "count": 2.0}


def test_an_expression_that_asks_for_bad_values_is_an_error() -> None:
    step = rows(("a:output", [NAN]), ("b:output", [INF]), ("c:output", [9.0]))

    assert [(hit.address.node, hit.severity) for hit in step.hits(watching("nan", "max > 8 and nan == 0"))] == [
        ("a", "error"),
        ("c", "warning"),
    ]


class TestMasks:
    """-Inf on purpose: an attention mask is no overflow, for watchpoints nobody chose."""

    def step(self, *, gradient: float = 0.1, loss: float = 1.0) -> StepRows:
        return rows(
            ("attn/masked_fill:output", [0.0, -INF]),
            ("attn:output", [0.5]),
            ("loss:loss", [loss]),
            ("attn.weight:grad", [gradient]),
            flags=[INPUTS_SEEN] * 4,
        )

    def recommended(self) -> Evaluator:
        return Evaluator([watchpoint("overflow", origin="recommended")])

    def test_a_mask_in_a_good_step_is_told_once_as_information(self) -> None:
        evaluator = self.recommended()

        first = self.step().hits(evaluator)

        assert [(hit.severity, hit.address.node) for hit in first] == [("info", "attn/masked_fill")]
        assert "looks like a mask" in first[0].reason
        assert self.step().hits(evaluator) == []

    def test_a_known_mask_is_not_the_origin_of_a_later_fault(self) -> None:
        evaluator = self.recommended()
        self.step().hits(evaluator)

        assert [(hit.severity, hit.address.node) for hit in self.step(gradient=NAN).hits(evaluator)] == [
            ("error", "attn.weight")
        ]

    @pytest.mark.parametrize("bad", [{"loss": -INF}, {"gradient": -INF}, {"gradient": NAN}])
    def test_minus_infinity_is_an_error_when_anything_else_is_bad(self, bad: dict[str, float]) -> None:
        assert [hit.severity for hit in self.step(**bad).hits(self.recommended())] == ["error", "error"]

    def test_a_watchpoint_of_the_user_is_taken_literally(self) -> None:
        evaluator = watching("overflow")

        assert [[hit.severity for hit in self.step().hits(evaluator)] for _ in range(2)] == [["error"], ["error"]]

    def test_part_of_a_step_proves_nothing(self) -> None:
        forward = rows(("attn/log:output", [-INF]))

        assert [hit.severity for hit in forward.hits(self.recommended())] == ["error"]


QUESTIONS: list[tuple[str, dict[str, float]]] = [
    ("tensor_overflow", {}),
    ("tensor_too_large", {"max_gt": 1.0}),
    ("tensor_too_large", {"max_gt": 2.0}),
    ("tensor_too_large", {"max_gt": 0.5, "mean_gt": 0.0}),
    ("tensor_too_small", {"abs_mean_lt": 0.7}),
    ("tensor_all_zero", {"zero_percentage_ge": 50.0}),
    ("tensor_all_zero", {"zero_percentage_ge": 75.0}),
    ("tensor_range", {"max_min_lt": 1.0, "max_min_gt": 3.0}),
    ("tensor_range", {"range_start_inclusive": -1.0, "range_end_inclusive": 1.0, "range_percentage_lt": 60.0}),
    ("operator_overflow", {}),
    ("weight_not_changed", {"rtol": 0.1}),
    ("weight_change_too_large", {"abs_mean_update_ratio_gt": 0.5}),
    ("weight_change_too_small", {"abs_mean_update_ratio_lt": 0.5}),
]
values = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 2.0, NAN, INF, -INF]), st.floats(-4, 4))


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    now = draw(st.lists(values, min_size=1, max_size=4))
    finite = st.floats(-4, 4)
    return Tensor(now, draw(st.one_of(st.none(), st.lists(finite, min_size=len(now), max_size=len(now)))))


@given(st.lists(st.tuples(tensors(), st.sampled_from([0, 1, 3, 4])), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_whole_step_is_answered_like_its_tensors_one_by_one(made: list[tuple[Tensor, int]]) -> None:
    step = rows(*[(f"n{i}:param", tensor) for i, (tensor, _) in enumerate(made)], flags=[flag for _, flag in made])
    evaluator = Evaluator([watchpoint(name, **parameters) for name, parameters in QUESTIONS])

    found = {(hit.address.node, hit.watchpoint): (hit.readings, hit.errors) for hit in step.hits(evaluator)}

    expected = {}
    for i, (tensor, flag) in enumerate(made):
        for number, (name, parameters) in enumerate(QUESTIONS, start=1):
            alone = answer(CONDITIONS[name], tensor, flags=flag, **parameters)
            if alone.hit:
                expected[f"n{i}", number] = (alone.readings, alone.errors)
    assert found == expected


def test_watchpoints_that_differ_only_in_thresholds_are_asked_together() -> None:
    step = rows(*[(f"n{i}:output", [float(i)]) for i in range(20)])
    limits = {i: i + 0.5 if i % 2 else i / 2 for i in range(20)}
    evaluator = Evaluator([watchpoint("tensor_too_large", on=f"n{i}", max_gt=limits[i]) for i in range(20)])
    expressions = Evaluator([watchpoint(f"max > {limits[i]}", on=f"n{i}") for i in range(20)])

    even = [f"n{i}" for i in range(2, 20, 2)]
    assert [hit.address.node for hit in step.hits(evaluator)] == even
    assert [hit.address.node for hit in step.hits(expressions)] == even
    assert len(evaluator._compiled()) == len(expressions._compiled()) == 1


def test_the_number_of_a_removed_watchpoint_is_not_given_again() -> None:
    evaluator = watching("overflow", "overflow")
    evaluator.remove(2)
    assert evaluator.add(parse_watch("overflow")).id == 3


def test_ids_are_given_to_watchpoints_without_one() -> None:
    evaluator = Evaluator([Watchpoint(id=7, condition="tensor_overflow")])

    assert evaluator.add(watchpoint("nan")).id == 8
    assert np.array_equal([watch.id for watch in evaluator.watchpoints], [7, 8])
