"""Many ranks as one: the phase, the reason and the end of a run from those of its ranks; pure."""

from __future__ import annotations

from typing import Any

from misstep.protocol.views import ControlPhase, Reason, WatchpointView
from misstep.protocol.wire import Bye


def question_of(view: WatchpointView) -> tuple[Any, ...]:
    """What a watchpoint asks, without its counts: a hit of another question is outdated."""
    return (view.condition, view.parameters, view.on, view.but, view.types, view.nodes)


def phase_of(phases: list[ControlPhase], *, ended: bool) -> ControlPhase:
    if not phases:
        return "ended" if ended else "lost"
    for phase in ("terminating", "pausing"):
        if phase in phases:
            return phase
    if "paused" in phases:
        return "paused" if all(phase in ("paused", "ended", "detached") for phase in phases) else "pausing"
    for phase in ("stepping", "running", "detached", "ended"):
        if phase in phases:
            return phase
    return phases[0]


def reason_of(reasons: list[Reason]) -> Reason | None:
    """The rank that has something of its own to say speaks first."""
    own = [reason for reason in reasons if reason.kind != "other_rank"]
    return next(iter(own or reasons), None)


def end_of(ended: dict[int, Bye]) -> str:
    reasons = {bye.reason for bye in ended.values()}
    for state in ("failed", "stopped"):
        if state in reasons:
            return state
    return "finished"
