"""The waiting inside a trainee, without a hub: nobody waits for ever by default, and a stop is a clean one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from misstep.adapters.base import Place, TrainingStopped
from misstep.adapters.step.frame import Frame
from misstep.capture.live.controller import STOPPED_BY_USER, Controller
from misstep.capture.session import Session
from misstep.capture.step.outcome import StepOutcome
from misstep.core.address import Address
from misstep.core.run import Step
from misstep.core.watching.watch import Hit
from misstep.core.watching.watchtext import watchpoint
from misstep.protocol.messages import Command
from misstep.settings import Settings


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Controller]:
    def controller(**given: Any) -> Controller:
        settings = Settings({"dir": str(tmp_path), "recommended": False, "grace_seconds": 0.2, **given})
        return Controller(settings, Session(settings))

    return controller


def outcome(step: Step, *hits: Hit) -> StepOutcome:
    frame = Frame()
    return StepOutcome(step, frame, *frame.finish(), hits=hits)


def order(controller: Controller, op: Any, **fields: Any) -> None:
    """As the link thread does it."""
    with controller.cond:
        controller.control.obey(Command("1", op, "r", **fields))
        controller.cond.notify_all()
    controller.push()


def test_a_pause_at_the_start_goes_on_when_no_debugger_comes(make: Callable[..., Controller]):
    controller = make(pause_at_start=True)
    controller.initial_pause()
    assert controller.control.phase == "running"
    assert controller.control.reason is not None
    assert controller.control.reason.text == "no debugger came within 0.2 s"


def test_a_hit_that_pauses_goes_on_when_no_debugger_comes(make: Callable[..., Controller]):
    controller = make()
    watch = controller.session.add_watchpoint(watchpoint("overflow", then="pause"))
    hit = Hit(1, watch.id, Address("fc", step=3, rank=0), "4 NaN")
    controller.step_boundary(outcome(Step(3, loss=1.0), hit))
    assert (controller.control.phase, controller.control.step) == ("running", 3)


def test_a_hit_that_is_only_noted_stops_nobody(make: Callable[..., Controller]):
    controller = make(grace_seconds=0)
    watch = controller.session.add_watchpoint(watchpoint("overflow", then="note"))
    controller.step_boundary(outcome(Step(1), Hit(1, watch.id, Address("fc", step=1, rank=0), "4 NaN")))
    assert controller.control.phase == "running"


def test_terminate_ends_training_with_its_own_exit_code(make: Callable[..., Controller]):
    controller = make()
    order(controller, "terminate")
    with pytest.raises(TrainingStopped) as stopped:
        controller.step_boundary(outcome(Step(1)))
    assert stopped.value.code == STOPPED_BY_USER
    assert controller.session.ended  # type: ignore[attr-defined]


def test_the_session_is_told_when_every_node_is_wanted(make: Callable[..., Controller]):
    controller = make()
    told: list[bool] = []
    controller.on_wants_nodes = told.append
    order(controller, "pause")
    node = controller.session.catalog.node("fc", "module", "Linear")
    controller.at_node(Place(node, "forward", "before", "module"))
    assert told == [True, False]


def test_a_waiting_training_goes_on_when_it_is_told_to(make: Callable[..., Controller]):
    controller = make(grace_seconds=0)
    order(controller, "step", count=1)
    ended = threading.Event()

    def train() -> None:
        controller.step_boundary(outcome(Step(1)))
        ended.set()

    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    while controller.control.phase != "paused":
        assert not ended.is_set()
    order(controller, "continue")
    assert ended.wait(20)
    thread.join(20)


def test_after_close_nothing_waits_any_more(make: Callable[..., Controller]):
    controller = make(grace_seconds=0)
    order(controller, "pause")
    controller.close("finished")
    controller.step_boundary(outcome(Step(1)))
    assert controller.control.phase == "ended"
