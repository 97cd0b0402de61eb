"""The compile report of a run: facts the trainee wrote while it compiled, put together by function.

    journal: compiled, graph_break, ignored_hooks ─┐
    trace.bin: time of every step ─────────────────┴─► graph_report(run) ─► GraphReport

Nothing is judged that was not seen: a run without these lines compiled nothing while it was watched.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from misstep.core.segments import FIRST, OWN
from misstep.diagnosis.compiled.advice import break_advice
from misstep.sentences.text import Sentence
from misstep.store.layout import rank_paths
from misstep.store.reading.reader import Run
from misstep.store.tracefile import Records, read_trace

_GRAPH_NUMBER = re.compile(r"^\d+/\d+: ")


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the user's that was compiled, once or again and again."""

    name: str
    file: str
    line: int
    graphs: int
    """Times it was compiled, parts after a break included."""
    seconds: float
    operators: int
    again_because: tuple[str, ...]
    """What no longer held each time it was compiled again, in the compiler's words."""
    steps: tuple[int, ...]
    """Steps in which it was compiled."""
    gave_up: str
    """Why the compiler runs it uncompiled from some call on; empty when it does not."""


@dataclass(frozen=True, slots=True)
class Break:
    """A line at which compiled code goes back to Python."""

    file: str
    line: int
    function: str
    reason: str
    explanation: str
    advice: Sentence | str


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hooks that compiled code does not call."""

    hooks: int
    modules: int
    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class GraphReport:
    run: str
    steps: int
    functions: tuple[Function, ...] = ()
    breaks: tuple[Break, ...] = ()
    ignored_hooks: tuple[Hooks, ...] = ()
    compile_seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    first_step: float | None = None
    """Seconds of the first step, compiling included; of this run's steady steps below."""
    steady_step: float | None = None
    eager_step: float | None = None
    """Seconds of a steady step of a run that does not compile, when one was given."""

    @property
    def graphs(self) -> int:
        return sum(one.graphs for one in self.functions)

    @property
    def troubled(self) -> bool:
        """Whether something is not as the user asked for: code that runs uncompiled, hooks that are not called."""
        return bool(self.ignored_hooks) or any(one.gave_up for one in self.functions)

    @property
    def break_even(self) -> int | None:
        """Steps after which compiling has paid for itself; None when that is unknown or never happens."""
        if self.eager_step is None or self.steady_step is None or self.steady_step >= self.eager_step:
            return None
        return int(np.ceil(self.compile_seconds / (self.eager_step - self.steady_step)))


def graph_report(run: Run, *, eager: Run | None = None, rank: int | None = None) -> GraphReport:
    """What was compiled in a run, of one rank (the first when none is named)."""
    number = rank if rank is not None else (run.ranks[0] if run.ranks else 0)
    compiled = [event.facts for event in run.events("compiled", number)]
    trace = _steps(run, number)
    functions = tuple(_functions(compiled, trace))
    first, steady = _step_times(trace, {step for one in functions for step in one.steps})
    return GraphReport(
        run=run.name,
        steps=len(run.steps(number)),
        functions=functions,
        breaks=tuple(_break(event.facts) for event in run.events("graph_break", number)),
        ignored_hooks=tuple(_hooks(event.facts) for event in run.events("ignored_hooks", number)),
        compile_seconds=sum(float(one.get("seconds", 0.0)) for one in compiled),
        stages=_stages(compiled),
        first_step=first,
        steady_step=steady,
        eager_step=_step_times(_steps(eager, eager.ranks[0]), ())[1] if eager is not None and eager.ranks else None,
    )


def _functions(compiled: Sequence[dict[str, Any]], trace: Records) -> Iterable[Function]:
    by_graph = {one["graph"]: one for one in compiled if one.get("graph") and not one.get("backward")}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in compiled:
        whose = by_graph.get(one.get("graph", ""), one) if one.get("backward") else one
        groups.setdefault((whose.get("file", ""), whose.get("function", "")), []).append(one)
    for (file, name), members in groups.items():
        forward = [one for one in members if not one.get("backward")] or members
        yield Function(
            name=name,
            file=file,
            line=min(int(one.get("line", 0)) for one in forward),
            graphs=sum(1 for one in forward if not one.get("gave_up")),
            seconds=sum(float(one.get("seconds", 0.0)) for one in members),
            operators=sum(int(one.get("operators", 0)) for one in forward),
            again_because=tuple(_reasons(forward)),
            steps=tuple(sorted({_step_at(trace, int(one.get("began", 0))) for one in members} - {0})),
            gave_up=next((one["gave_up"] for one in forward if one.get("gave_up")), ""),
        )


def _reasons(members: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Why each compilation after the first was needed: the compiler's own reason, or the inputs that changed."""
    inputs_before: list[str] | None = None
    for one in members:
        inputs = one.get("inputs")
        if one.get("again_because"):
            yield _GRAPH_NUMBER.sub("", one["again_because"])
        elif inputs_before is not None and inputs is not None:
            changed = [f"{old} → {new}" for old, new in zip(inputs_before, inputs) if old != new]
            if changed:
                yield ", ".join(changed)
        inputs_before = inputs


def _stages(compiled: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Seconds by stage; what is inside another stage is not counted in that one, too."""
    total: dict[str, float] = {}
    for one in compiled:
        stages, seconds = one.get("stages", {}), float(one.get("seconds", 0.0))
        backend, inductor = float(stages.get("backend", 0.0)), float(stages.get("inductor", 0.0))
        parts = {"backward": seconds} if one.get("backward") else {}
        if stages:
            parts = {"trace": seconds - backend, "autograd": backend - inductor, "inductor": inductor}
        for name, value in parts.items():
            total[name] = total.get(name, 0.0) + max(0.0, value)
    return {name: value for name, value in total.items() if value > 0}


def _break(facts: dict[str, Any]) -> Break:
    reason = str(facts.get("reason", ""))
    return Break(
        file=str(facts.get("file", "")),
        line=int(facts.get("line", 0)),
        function=str(facts.get("function", "")),
        reason=reason,
        explanation=str(facts.get("explanation", "")),
        advice=break_advice(reason, str(facts.get("explanation", "")), str(facts.get("hint", ""))),
    )


def _hooks(facts: dict[str, Any]) -> Hooks:
    return Hooks(
        int(facts.get("hooks", 0)),
        int(facts.get("modules", 0)),
        str(facts.get("function", "")),
        str(facts.get("file", "")),
        int(facts.get("line", 0)),
    )


def _steps(run: Run, rank: int) -> Records:
    return read_trace(rank_paths(run.path, rank).trace).steps


def _step_times(steps: Records, compiling: Collection[int]) -> tuple[float | None, float | None]:
    """(the first step, the median of those after it that compiled nothing) in seconds, misstep's share left out."""
    if not len(steps):
        return None, None
    spent = steps["spent"].astype(np.float64)
    seconds = (spent.sum(axis=1) - spent[:, OWN]) * 1e-6
    first = steps["flags"] & FIRST != 0
    steady = seconds[~first & ~np.isin(steps["number"], list(compiling))]
    return (
        float(seconds[first][0]) if first.any() else None,
        float(np.median(steady)) if len(steady) else None,
    )


def _step_at(steps: Records, moment: int) -> int:
    """The step under way at a moment; 0 when that is not known."""
    if not len(steps) or not moment:
        return 0
    place = int(np.searchsorted(steps["began"], moment, side="right")) - 1
    return int(steps["number"][max(0, place)])
