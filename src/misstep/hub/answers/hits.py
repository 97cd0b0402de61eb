"""Hits of a run, narrowed down; and the conditions a watchpoint can have."""

from __future__ import annotations

from collections.abc import Sequence

from misstep.core.watching.conditions import CONDITIONS
from misstep.protocol.payloads import ConditionView, HitList, ParameterView
from misstep.protocol.views import HitView, hit_view, number
from misstep.store.reading.reader import Run


def hit_list(
    hits: Sequence[HitView],
    *,
    watchpoint: int | None,
    step: int | None,
    node: str,
    offset: int,
    limit: int,
    birth: str = "",
) -> HitList:
    """Hits narrowed down, in the order of step and execution."""
    chosen = [
        hit
        for hit in hits
        if (watchpoint is None or hit.watchpoint == watchpoint)
        and (step is None or hit.step == step)
        and birth in ("", hit.birth)
        and (not node or hit.node == node or hit.node.startswith((node + ".", node + "/")))
    ]
    chosen.sort(key=lambda hit: (hit.step, hit.rank, hit.order, hit.id))
    counts: dict[str, int] = {}
    for hit in hits:
        counts[str(hit.watchpoint)] = counts.get(str(hit.watchpoint), 0) + 1
    return HitList(
        hits=tuple(chosen[offset : offset + limit]),
        total=len(chosen),
        by_watchpoint=counts,
        origins=sum(hit.birth == "origin" for hit in chosen),
    )


def stored_hits(run: Run) -> list[HitView]:
    return [hit_view(hit) for hit in run.hits()]


def conditions(lang: str = "en") -> list[ConditionView]:
    """Everything a watchpoint can ask, for an editor."""
    return [
        ConditionView(
            name=condition.name,
            title=condition.name.replace("_", " "),
            help=condition.summary_zh if lang.startswith("zh") else condition.summary,
            category=condition.category,
            parameters=tuple(
                ParameterView(
                    parameter.name,
                    "flag" if parameter.kind == "switch" else "number",
                    parameter.default if isinstance(parameter.default, bool) else number(parameter.default),
                    bool(parameter.required),
                )
                for parameter in condition.parameters
                if not parameter.hidden
            ),
            needs=tuple(sorted(condition.needs)),
        )
        for condition in CONDITIONS.values()
    ]
