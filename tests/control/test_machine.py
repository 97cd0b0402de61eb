"""The state machine of the debugger, without threads: facts in, verdicts out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misstep.control.goals import Spot, StepFacts, Until
from misstep.control.machine import Control
from misstep.errors import ControlError, StaleCommand
from misstep.protocol.messages import Command
from misstep.protocol.views import Reason

NODES = ("encoder.0", "encoder.1", "decoder")


def order(op: Any, **fields: Any) -> Command:
    return Command(id="1", op=op, run="r", **fields)


def spots() -> list[Spot]:
    """One step: every module forward and backward, then the optimizer."""
    forward = [Spot(node, "forward", when) for node in NODES for when in ("before", "after")]
    backward = [Spot(node, "backward", when) for node in reversed(NODES) for when in ("before", "after")]
    return [
        *forward,
        *backward,
        Spot("SGD", "optimizer", "before", "optimizer"),
        Spot("SGD", "optimizer", "after", "optimizer"),
    ]


def train(control: Control, *, steps: int = 1, loss: float | None = None, start: int = 0) -> Spot | int | None:
    """Run on until the control says wait: the place, or the number of the step that had just ended; None if never."""
    for number in range(control.step + 1, control.step + 1 + steps):
        for spot in spots()[start:]:
            if control.at_node(spot) != "go":
                return spot
        start = 0
        if control.step_boundary(StepFacts(number, loss=loss)) != "go":
            return number
    return None


def paused(at: int = 0) -> Control:
    control = Control(step=at)
    assert control.starting(pause=True) == "wait"
    return control


def test_without_a_debugger_nothing_ever_waits():
    assert train(Control(), steps=5) is None


def test_pause_stops_at_the_next_node_whatever_its_kind():
    control = Control()
    control.obey(order("pause"))
    assert control.phase == "pausing"
    assert train(control) == spots()[0]
    assert (control.phase, control.reason.kind if control.reason else "") == ("paused", "user")


def test_pause_stops_at_the_boundary_when_no_node_is_told():
    control = Control()
    control.obey(order("pause"))
    assert control.step_boundary(StepFacts(1)) == "wait"


def test_a_paused_training_waits_until_continue():
    control = paused()
    assert control.must_wait
    control.obey(order("continue"))
    assert not control.must_wait
    assert train(control, steps=3) is None


def test_step_5_pauses_at_the_end_of_the_fifth_step():
    control = paused()
    control.obey(order("step", count=5))
    assert control.phase == "stepping"
    assert train(control, steps=9) == 5


def test_one_step_from_the_middle_of_a_step_ends_with_that_step():
    control = paused()
    control.obey(order("next"))
    assert train(control) == Spot("encoder.0", "forward", "after")
    control.obey(order("step"))
    assert train(control, start=2) == 1


def test_next_goes_from_node_to_node_and_then_to_the_end_of_the_step():
    control = paused()
    seen: list[Spot | int | None] = []
    start = 0
    for _ in range(9):
        control.obey(order("next"))
        place = train(control, steps=1, start=start)
        seen.append(place)
        start = spots().index(place) + 1 if isinstance(place, Spot) else 0
    shown = [spot for spot in spots() if spot.when == "after"]
    assert seen == [*shown, 1, Spot("encoder.0", "forward", "after")]


def test_next_at_module_granularity_passes_operators():
    control = paused()
    control.obey(order("next"))
    assert control.at_node(Spot("encoder.0/log", "forward", "after", "operator")) == "go"
    assert control.at_node(Spot("encoder.0", "forward", "after")) == "wait"


def test_next_at_operator_granularity_stops_at_operators():
    control = paused()
    control.obey(order("granularity", granularity="operator"))
    control.obey(order("next"))
    assert control.at_node(Spot("encoder.0/log", "forward", "after", "operator")) == "wait"


@pytest.mark.parametrize(
    ("node", "place"),
    [
        ("decoder", Spot("decoder", "forward", "after")),
        ("decoder:input", Spot("decoder", "forward", "before")),
        ("decoder:output", Spot("decoder", "forward", "after")),
        ("decoder:grad_output", Spot("decoder", "backward", "before")),
        ("decoder:grad_input", Spot("decoder", "backward", "after")),
        ("SGD", Spot("SGD", "optimizer", "after", "optimizer")),
        ("SGD:grad", Spot("SGD", "optimizer", "before", "optimizer")),
        ("SGD:param", Spot("SGD", "optimizer", "after", "optimizer")),
    ],
)
def test_run_to_reaches_the_place_an_address_names(node: str, place: Spot):
    control = paused()
    control.obey(order("run_to", node=node))
    assert train(control) == place
    assert control.spot == place


def told(control: Control) -> tuple[str, str]:
    assert control.reason is not None
    return control.reason.kind, control.reason.text


def test_why_it_paused_is_said_in_both_languages():
    control = paused()
    control.obey(order("run_to", node="decoder.2"))
    train(control, steps=3)
    assert control.reason is not None
    assert control.reason.text_zh == "decoder.2 在轮次 1 中没有执行；已在该轮次结束时暂停"


def test_run_to_never_passes_the_step_and_says_so():
    control = paused()
    control.obey(order("run_to", node="decoder.2"))
    assert train(control, steps=3) == 1
    assert told(control) == ("step_end", "decoder.2 did not run in step 1; paused at its end")


def test_run_to_the_second_call_of_a_shared_module():
    control = paused()
    control.obey(order("run_to", node="shared~2"))
    assert control.at_node(Spot("shared", "forward", "after", call=1)) == "go"
    assert control.at_node(Spot("shared", "forward", "after", call=2)) == "wait"


def test_until_loss_pauses_at_the_first_step_where_it_holds():
    control = paused()
    control.obey(order("until", condition="loss > 10"))
    assert control.step_boundary(StepFacts(1, loss=3.0)) == "go"
    assert control.step_boundary(StepFacts(2, loss=None)) == "go"
    assert control.step_boundary(StepFacts(3, loss=11.0)) == "wait"
    assert told(control) == ("until", "loss > 10 holds at step 3")


def test_until_time_counts_from_the_command():
    control = paused()
    control.obey(order("until", condition="time > 60"), now=1000.0)
    assert control.step_boundary(StepFacts(1), now=1059.0) == "go"
    assert control.step_boundary(StepFacts(2), now=1061.0) == "wait"


@pytest.mark.parametrize(
    ("text", "facts", "holds"),
    [
        ("step >= 40", StepFacts(40), True),
        ("step == 40", StepFacts(39), False),
        ("loss == nan", StepFacts(1, loss=float("nan")), True),
        ("loss != nan", StepFacts(1, loss=1.0), True),
        ("loss > 10", StepFacts(1, loss=float("nan")), False),
        ("loss > 10 and step > 5 or lr < 1e-3", StepFacts(1, loss=99, learning_rate=1e-4), True),
        ("loss<=-inf", StepFacts(1, loss=float("-inf")), True),
    ],
)
def test_until_reads_conditions_as_written(text: str, facts: StepFacts, holds: bool):
    assert Until(text, now=0).holds(facts, now=0) is holds


@pytest.mark.parametrize("text", ["", "loss", "loss >", "__import__('os')", "loss > 10 and", "weight > 3", "1 > loss"])
def test_a_condition_that_cannot_be_read_is_refused_with_an_example(text: str):
    with pytest.raises(ControlError, match="examples: 'loss > 10'"):
        paused().obey(order("until", condition=text))


def test_a_hit_pauses_and_takes_precedence_over_a_goal():
    control = paused()
    control.obey(order("step", count=10))
    hit = Reason("watchpoint", "encoder.0:output has 4 NaN", watchpoint=2, hit=17)
    assert control.step_boundary(StepFacts(1), hit=hit) == "wait"
    assert control.reason == hit


def test_a_command_with_an_old_revision_is_refused_and_changes_nothing():
    control = paused()
    seen = control.rev
    control.obey(order("continue", rev=seen))
    with pytest.raises(StaleCommand, match="the run has moved since you looked"):
        control.obey(order("step", rev=seen))
    assert control.phase == "running"


def test_the_revision_stays_while_training_just_runs():
    control = Control()
    seen = control.rev
    train(control, steps=5)
    control.obey(order("pause", rev=seen))
    assert control.phase == "pausing"


def test_a_command_on_the_way_to_a_goal_is_queued_and_follows_it():
    control = paused()
    control.obey(order("step", count=2))
    control.obey(order("run_to", node="decoder"))
    assert [queued.text for queued in control.queued()] == ["run_to decoder"]
    assert train(control, steps=3) == Spot("decoder", "forward", "after")
    assert (control.step, control.queued()) == (2, ())


def test_a_hit_on_the_way_drops_what_was_queued():
    control = paused()
    control.obey(order("step", count=5))
    control.obey(order("step", count=5))
    assert control.step_boundary(StepFacts(1), hit=Reason("watchpoint", "NaN")) == "wait"
    assert control.queued() == ()


@pytest.mark.parametrize(("op", "verdict"), [("terminate", "stop"), ("detach", "detach")])
def test_terminate_and_detach_take_effect_at_the_next_place(op: str, verdict: str):
    control = Control()
    control.obey(order(op))
    assert control.at_node(spots()[0]) == verdict
    assert control.step_boundary(StepFacts(1)) == verdict


def test_a_terminated_training_obeys_nothing_more():
    control = paused()
    control.obey(order("terminate"))
    with pytest.raises(ControlError, match="cannot continue: training is terminating"):
        control.obey(order("continue"))


def test_continue_while_running_is_refused():
    with pytest.raises(ControlError, match="already running"):
        Control().obey(order("continue"))


def test_reset_of_a_live_training_is_refused():
    with pytest.raises(ControlError, match="cannot reset"):
        paused().obey(order("reset", count=3))


# ── several ranks ──


def ranks(count: int = 2) -> list[Control]:
    every = [Control() for _ in range(count)]
    for control in every:
        control.coordinated = True
    return every


def agree(every: list[Control], reason: Reason) -> int:
    """What the hub does."""
    step = max(control.rendezvous() for control in every)
    for control in every:
        control.meet(step, reason)
    return step


def test_a_hit_on_one_rank_pauses_all_at_the_same_step():
    zero, one = ranks()
    zero.step_boundary(StepFacts(36))
    assert one.step_boundary(StepFacts(36), hit=Reason("watchpoint", "NaN", rank=1)) == "ask"
    # Rank 0 is inside step 37 already and may be waiting for rank 1 in a collective: they meet at the end of 37.
    assert agree([zero, one], Reason("other_rank", "NaN on rank 1", rank=1)) == 37
    assert not one.must_wait
    assert one.step_boundary(StepFacts(37)) == "wait"
    assert zero.step_boundary(StepFacts(37)) == "wait"
    assert (zero.step, one.step) == (37, 37)
    assert [control.reason.kind if control.reason else "" for control in (zero, one)] == ["other_rank", "watchpoint"]


def test_ranks_that_stand_at_the_same_boundary_meet_there():
    zero, one = ranks()
    reason = Reason("watchpoint", "NaN")
    assert [control.step_boundary(StepFacts(5), hit=reason) for control in (zero, one)] == ["ask", "ask"]
    assert agree([zero, one], reason) == 5
    assert (zero.phase, one.phase) == ("paused", "paused")


def test_a_rank_holds_at_its_boundary_until_the_meeting_step_is_named():
    zero, _ = ranks()
    assert zero.rendezvous() == 1
    assert zero.step_boundary(StepFacts(1)) == "ask"
    assert zero.must_wait
    zero.meet(2, Reason("user", ""))
    assert not zero.must_wait
    assert zero.step_boundary(StepFacts(2)) == "wait"


def test_a_rank_that_merely_holds_at_the_meeting_step_pauses_there():
    zero, one = ranks()
    zero.step_boundary(StepFacts(1))
    one.step_boundary(StepFacts(1))
    assert (zero.rendezvous(), one.rendezvous()) == (2, 2)
    assert zero.step_boundary(StepFacts(2)) == "ask"
    for control in (zero, one):
        control.meet(2, Reason("user", "paused on request"))
    assert zero.phase == "paused"
    assert zero.must_wait
    assert one.step_boundary(StepFacts(2)) == "wait"


def test_a_rank_that_ran_on_is_under_way_even_when_asked_twice():
    zero, _ = ranks()
    zero.step_boundary(StepFacts(1))
    assert (zero.rendezvous(), zero.rendezvous()) == (2, 2)


def test_a_hub_that_is_lost_while_ranks_ask_lets_them_go():
    zero, one = ranks()
    zero.rendezvous()
    assert zero.step_boundary(StepFacts(1)) == "ask"
    zero.release()
    assert not zero.must_wait
    one.step_boundary(StepFacts(1), hit=Reason("watchpoint", "NaN"))
    one.release()
    assert one.phase == "paused"


@given(
    ahead=st.lists(st.integers(0, 1), min_size=2, max_size=6),
    asks=st.integers(0, 5),
)
def test_ranks_never_stop_at_different_steps(ahead: list[int], asks: int):
    """Whatever boundary each rank is at, the meeting step is reachable by all and the same for all."""
    every = ranks(len(ahead))
    for control, extra in zip(every, ahead):
        for number in range(1, 4 + extra):
            control.step_boundary(StepFacts(number))
    asking = every[asks % len(every)]
    asking.step_boundary(StepFacts(asking.step + 1), hit=Reason("watchpoint", "NaN"))
    meeting = agree(every, Reason("other_rank", ""))
    for control in every:
        while control.phase != "paused":
            control.step_boundary(StepFacts(control.step + 1))
        assert control.step == meeting


OPERATIONS = st.sampled_from(
    ["continue", "pause", "step", "until", "next", "run_to", "terminate", "detach", "granularity", "reset", "recheck"]
)


@given(st.lists(st.one_of(OPERATIONS, st.just("node"), st.just("boundary"), st.just("meet")), max_size=40))
def test_no_order_of_events_breaks_the_machine(events: list[str]):
    """Whatever comes in whatever order: a command is obeyed or refused, `rev` never falls, paused means waiting."""
    control = Control()
    for event in events:
        before = control.rev
        if event == "node":
            if not control.must_wait:
                control.at_node(spots()[0])
        elif event == "boundary":
            if not control.must_wait:
                control.step_boundary(StepFacts(control.step + 1, loss=1.0))
        elif event == "meet":
            control.meet(control.rendezvous(), Reason("user", ""))
        else:
            try:
                control.obey(order(event, condition="loss > 0", node="encoder.0"))
            except ControlError:
                assert control.rev == before
        assert control.rev >= before
        assert control.must_wait <= (control.phase == "paused")
