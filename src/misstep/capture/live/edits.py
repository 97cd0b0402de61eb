"""Watchpoints changed by a client while training waits or runs: added, edited, muted, tried out, and by scope.

Runs on the training thread. Every edit is checked here again, whatever the hub has checked, and what the memory
budget cannot hold is refused with the figure rather than met with an out-of-memory error later.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any, Literal

import msgspec

from misstep.capture.keep.ledger import Account
from misstep.capture.live.debuggee import Debuggee
from misstep.capture.step.judge import PREVIOUS_SHARE
from misstep.core.dumps import parse_dump
from misstep.core.watching.conditions import CONDITIONS
from misstep.core.watching.expressions import parse_expression
from misstep.core.watching.recommend import recommended
from misstep.core.watching.watch import Watchpoint
from misstep.core.watching.watchtext import parse_watch, watchpoint
from misstep.errors import ConditionError, ControlError
from misstep.protocol.messages import WatchEdit, WatchSpec
from misstep.protocol.payloads import DryRun
from misstep.protocol.views import WatchpointView, hit_view, watchpoint_view

Changed = list[tuple[Literal["add", "update", "remove"], WatchpointView]]
READ_BYTES_PER_SECOND = 4e9
"""How fast statistics read memory on a usual CPU; only for the estimate a dry run shows."""


class Edits:
    """The watchpoints of one session, through a client's hands."""

    def __init__(self, session: Debuggee) -> None:
        self._session = session

    def apply(self, edit: WatchEdit) -> tuple[Any, Changed]:
        """The result for the client, and what changed for everybody."""
        if edit.op == "dry_run":
            return msgspec.to_builtins(self._dry_run(self._specified(edit))), []
        if edit.op == "recommend":
            return self._recommended()
        if edit.op == "dump":
            return self._dump(edit), []
        if edit.op == "add":
            return self._added(self._specified(edit), "add")
        known = self._known(edit.watchpoint)
        if edit.op == "update":
            made = self._specified(edit)
            return self._added(replace(made, id=known.id, enabled=known.enabled, origin=known.origin), "update")
        if edit.op == "remove":
            self._session.delete_watchpoint(known.id)
            return {"watchpoint": known.id}, [("remove", watchpoint_view(known))]
        if edit.op in ("enable", "disable"):
            return self._added(replace(known, enabled=edit.op == "enable"), "update")
        return self._scoped(known, edit)

    def views(self) -> tuple[WatchpointView, ...]:
        return tuple(self.view(watch) for watch in self._session.watchpoints)

    def view(self, watch: Watchpoint) -> WatchpointView:
        evaluator = self._session.evaluator
        if watch.id not in evaluator.hit_counts():
            return watchpoint_view(watch)
        refused = len(evaluator.refused & set(evaluator.watched(watch.id)))
        note = f"no memory for the previous value of {refused} tensors; their change is not watched" if refused else ""
        return watchpoint_view(
            watch, tensors=len(evaluator.watched(watch.id)), hits=evaluator.hit_counts()[watch.id], note=note
        )

    @property
    def _room(self) -> Account:
        """For previous values."""
        return self._session.ledger.account("previous values", share=PREVIOUS_SHARE)

    def _added(self, watch: Watchpoint, op: Literal["add", "update"]) -> tuple[Any, Changed]:
        self._check_memory(watch)
        added = self._session.add_watchpoint(watch)
        view = self.view(added)
        return msgspec.to_builtins(view), [(op, view)]

    def _check_memory(self, watch: Watchpoint) -> None:
        """Previous values of what it watches must fit, at least in part; a little is degraded, far too much refused."""
        trial = self._dry_run(watch)
        free = self._room.free
        if trial.memory_bytes > free and trial.memory_bytes > 8 * self._room.limit_bytes:
            raise ControlError(
                f"{watch.condition} needs {trial.memory_bytes >> 20} MiB for {trial.tensors} previous values;"
                f" {free >> 20} MiB are free (memory_mb). Watch fewer: on encoder.*:param, or raise memory_mb",
                code="denied",
            )

    def _dry_run(self, watch: Watchpoint) -> DryRun:
        trial = self._session.dry_run(watch)
        needs_previous = _needs_previous(watch)
        memory = trial.bytes // 2 if needs_previous else 0
        free = self._room.free
        note = ""
        if memory > free:
            note = f"previous values need {memory >> 20} MiB and {free >> 20} MiB are free: only some are kept"
        return DryRun(
            hits=len(trial.hits),
            tensors=trial.tensors,
            bytes_per_step=trial.bytes,
            seconds_per_step=trial.bytes / READ_BYTES_PER_SECOND if needs_previous else 0.0,
            memory_bytes=memory,
            examples=tuple(hit_view(hit) for hit in trial.hits[:20]),
            note=note,
        )

    def _recommended(self) -> tuple[Any, Changed]:
        there = {(watch.condition, watch.on) for watch in self._session.watchpoints}
        changed: Changed = []
        for watch in recommended():
            if (watch.condition, watch.on) not in there:
                changed += self._added(replace(watch, id=0), "add")[1]
        return {"added": [view.id for _, view in changed]}, changed

    def _dump(self, edit: WatchEdit) -> dict[str, Any]:
        """Whole tensors of the steps named, or of the next one."""
        patterns = edit.spec.on if edit.spec is not None else ()
        if not patterns:
            raise ControlError("a dump needs a pattern, like encoder.*:output", code="bad_request")
        steps = edit.scope
        if not steps and not any("@" in pattern for pattern in patterns):
            frame, step = self._session.frame, self._session.step
            steps = str(step + 1 if frame.step == step and len(frame) else step)
        added = [self._session.add_dump(parse_dump(pattern, steps=steps)) for pattern in patterns]
        known = sum(len(self._session.dumper.fitting(one.id)) for one in added)
        return {"ids": [one.id for one in added], "dumps": [str(one) for one in added], "tensors": known}

    def _scoped(self, known: Watchpoint, edit: WatchEdit) -> tuple[Any, Changed]:
        """Every node below a scope joins or leaves; the watchpoint then has an explicit list of nodes."""
        graph = self._session.catalog.graph
        below = [name for name in graph.names() if _inside(name, edit.scope)]
        if not below:
            raise ControlError(f"no node lies below {edit.scope!r}", code="not_found")
        if known.nodes or known.on:
            now = set(known.nodes) or {
                name for name in graph.names() if any(pattern.matches_node(name) for pattern in known.on)
            }
        else:
            now = set(graph.names())
        now = now | set(below) if edit.op == "watch_scope" else now - set(below)
        if not now:
            raise ControlError("nothing would be watched any more; remove or disable it", code="bad_request")
        # Patterns still say which roles are meant; a list of names alone would also match inputs and gradients.
        on = tuple(dict.fromkeys(replace(pattern, node="*") for pattern in known.on))
        return self._added(replace(known, nodes=tuple(sorted(now)), on=on), "update")

    def _known(self, id: int | None) -> Watchpoint:
        for watch in self._session.watchpoints:
            if watch.id == id:
                return watch
        there = ", ".join(str(watch.id) for watch in self._session.watchpoints) or "none"
        raise ControlError(f"no watchpoint {id}; there are {there}", code="not_found")

    def _specified(self, edit: WatchEdit) -> Watchpoint:
        spec = edit.spec
        if spec is None or not spec.condition.strip():
            raise ControlError("a watchpoint needs a condition, like overflow or 'abs_mean > 1e3'", code="bad_request")
        return watchpoint_of(spec)


def watchpoint_of(spec: WatchSpec) -> Watchpoint:
    """A checked watchpoint from what a client wrote: fields, or a whole line in `condition`."""
    if not (spec.on or spec.nodes or spec.parameters or spec.but or spec.types):
        made = parse_watch(spec.condition)
        then = made.then if " then " in f" {spec.condition} " else spec.then
        return replace(made, then=then, limit=spec.limit or made.limit, name=spec.name)
    clash = set(spec.parameters) & _NOT_PARAMETERS
    if clash:
        raise ConditionError(f"{', '.join(sorted(clash))} is no parameter of {spec.condition}")
    parameters: dict[str, Any] = dict(spec.parameters)
    return watchpoint(
        spec.condition,
        on=spec.on or None,
        but=spec.but or None,
        types=spec.types,
        nodes=spec.nodes,
        then=spec.then,
        limit=spec.limit,
        name=spec.name,
        **parameters,
    )


_NOT_PARAMETERS = frozenset(inspect.signature(watchpoint).parameters)


def _needs_previous(watch: Watchpoint) -> bool:
    if watch.condition in CONDITIONS:
        return "previous" in CONDITIONS[watch.condition].needs
    return "previous" in parse_expression(watch.condition).needs


def _inside(name: str, scope: str) -> bool:
    return not scope or name == scope or name.startswith((scope + ".", scope + "/"))
