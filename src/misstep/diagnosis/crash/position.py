"""How far a step had come when the process ended, in execution order.

The recorder keeps which modules were entered, not every operator: that would cost too much. So the place is a stretch:
from the module entered last to the one that would have been entered next.

    forward ──────────── loss ── backward ────────── optimizer
              ├─ here ─┤                                         entered blocks.3.fc, never reached head
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from misstep.core.graph import Graph, Node, Phase

AROUND = 12
"""How many nodes before, inside and after the stretch are told."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A node of the step under way."""

    order: int
    node: str
    type: str
    phase: Phase
    done: bool
    """It ran; false within the stretch, where it may have, and after it."""
    here: bool
    source: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Reached:
    """The stretch of the execution order in which the process ended."""

    first: int
    last: int
    total: int
    nodes: tuple[Passed, ...]
    phases: tuple[tuple[str, int], ...]
    """The phases of a step in order, each with the position of its last node."""


def reached(graph: Graph, phase: str, entered: Sequence[str]) -> Reached | None:
    """Where in the order of `graph` a step was; `entered` are the modules of its trail, the latest first.

    None when the phase does not say (between two of them) or when nothing of the order was recorded.
    """
    order = sorted((node for node in graph.nodes if node.order and _runs(node)), key=lambda node: node.order)
    wanted = {"forward": ("input", "forward"), "backward": ("backward",), "optimizer": ("optimizer",)}.get(phase)
    if not order or wanted is None:
        return None
    at = {node.name: place for place, node in enumerate(order)}
    inside = [place for place, node in enumerate(order) if node.phase in wanted]
    if not inside:
        return None
    first, last = inside[0], inside[-1]
    if phase == "forward":
        place = next((at[name] for name in entered[:1] if name in at), None)
        if place is None:
            return None
        first = place
        modules = [one for one in inside if one > place and order[one].kind == "module"]
        last = max(place, modules[0] - 1) if modules else last
    return Reached(first + 1, last + 1, len(order), tuple(_told(order, first, last)), tuple(_phases(order)))


def _runs(node: Node) -> bool:
    return node.kind not in ("parameter", "buffer")


def _told(order: list[Node], first: int, last: int) -> list[Passed]:
    """The nodes around the stretch; of a long one its beginning."""
    chosen = [
        *range(max(0, first - AROUND), first),
        *range(first, min(last + 1, first + AROUND)),
        *range(last + 1, min(len(order), last + 1 + AROUND // 2)),
    ]
    return [
        Passed(
            order=place + 1,
            node=order[place].name,
            type=order[place].type,
            phase=order[place].phase,
            done=place < first,
            here=first <= place <= last,
            source="" if source is None else f"{source.file}:{source.line}",
            code="" if source is None else source.code,
        )
        for place in chosen
        for source in (order[place].source,)
    ]


def _phases(order: list[Node]) -> list[tuple[str, int]]:
    ends: dict[str, int] = {}
    for place, node in enumerate(order):
        ends["forward" if node.phase == "input" else node.phase] = place + 1
    return sorted(ends.items(), key=lambda pair: pair[1])
