"""Compiled against uncompiled code, as a run tells of it: one verdict for each graph, and one for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from misstep.store.reading.reader import Run

Kind = Literal["same", "unstable", "miscompiled", "unchecked"]


@dataclass(frozen=True, slots=True)
class GraphCheck:
    """One compiled graph of one step."""

    rank: int
    graph: int
    step: int
    kind: Kind
    compared: int
    """Operators compared."""
    random: int
    """Operators that draw random numbers, whose own values cannot be compared."""
    operator: str
    """The first that is wrong, or the one furthest from what rounding explains."""
    backward: bool
    file: str
    line: int
    compiled_error: float
    eager_error: float
    reproduction: str
    why: str
    """Of a graph that could not be compared."""


@dataclass(frozen=True, slots=True)
class ModeComparison:
    run: str
    graphs: tuple[GraphCheck, ...]
    modes: tuple[str, ...]
    """Of MindSpore: what both modes made of a step, in its own sentences."""
    modes_differ: bool

    @property
    def differs(self) -> bool:
        return self.modes_differ or any(one.kind == "miscompiled" for one in self.graphs)


def mode_comparison(run: Run) -> ModeComparison:
    told = run.events("modes")
    return ModeComparison(
        run=run.name,
        graphs=tuple(_graph(event.facts, event.rank) for event in run.events("mode_check")),
        modes=tuple(str(event.facts.get("text", "")) for event in told),
        modes_differ=any(event.facts.get("agree") is False for event in told),
    )


def _graph(facts: dict[str, Any], rank: int) -> GraphCheck:
    return GraphCheck(
        rank=rank,
        graph=int(facts.get("graph", 0)),
        step=int(facts.get("step", 0)),
        kind=_kind(facts),
        compared=int(facts.get("compared", 0)),
        random=int(facts.get("random", 0)),
        operator=str(facts.get("operator", "")),
        backward=bool(facts.get("backward")),
        file=str(facts.get("file", "")),
        line=int(facts.get("line", 0)),
        compiled_error=float(facts.get("compiled_error", 0.0)),
        eager_error=float(facts.get("eager_error", 0.0)),
        reproduction=str(facts.get("reproduction", "")),
        why=str(facts.get("unchecked", "")),
    )


def _kind(facts: dict[str, Any]) -> Kind:
    if "unchecked" in facts:
        return "unchecked"
    if facts.get("wrong"):
        return "miscompiled"
    return "unstable" if facts.get("unstable") else "same"
