"""What torch.compile did, read from the accounts Dynamo keeps for itself: nothing is patched, nothing compiled again.

    get_compilation_metrics()   a record for every graph: function, time by stage, the guard that failed
    graph_break_reasons         where code went back to Python, with the user's stack

Dynamo keeps the last 64 records; the trainee reads them about once a second.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from misstep.adapters.pytorch.compiled.hooks import IgnoredHooks
from misstep.adapters.pytorch.names import is_users
from misstep.adapters.timing.compilations import Compilations, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

UTILS = "torch._dynamo.utils"
_RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$")
_STAGES = {
    "backend": "backend_compile_time_s",
    "inductor": "inductor_compile_time_s",
    "code": "code_gen_time_s",
}
_MOST_TEXT = 300


class CompileReport:
    """Of one training process."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A training is watched from here on: what was compiled before belongs to no step of it."""
        self._found = Compilations()
        self.hooks = IgnoredHooks()
        self._last: Any = None
        self._breaks_read = 0
        self._breaks: set[tuple[str, int, str]] = set()
        utils = sys.modules.get(UTILS)
        if utils is not None:
            records = utils.get_compilation_metrics()
            self._last = records[-1] if records else None
            self._breaks_read = len(utils.graph_break_reasons)

    def news(self) -> list[tuple[Kind, dict[str, Any]]]:
        utils = sys.modules.get(UTILS)
        if utils is None:
            return []
        for record in self._new_records(utils.get_compilation_metrics()):
            self.hooks.frames.add((str(record.co_filename or ""), int(record.co_firstlineno or 0)))
            self._found.add("compiled", **graph_facts(record))
        for facts in self._new_breaks(utils.graph_break_reasons):
            self._found.add("graph_break", **facts)
        for facts in self.hooks.news():
            self._found.add("ignored_hooks", **facts)
        return self._found.news()

    def _new_records(self, records: Sequence[Any]) -> list[Any]:
        fresh: list[Any] = []
        for record in reversed(records):
            if record is self._last:
                break
            fresh.append(record)
        self._last = records[-1] if records else self._last
        return fresh[::-1]

    def _new_breaks(self, reasons: Sequence[Any]) -> Iterator[dict[str, Any]]:
        if len(reasons) < self._breaks_read:  # torch._dynamo.reset()
            self._breaks_read = 0
        fresh, self._breaks_read = reasons[self._breaks_read :], len(reasons)
        for one in fresh:
            facts = break_facts(one)
            place = (facts["file"], facts["line"], facts["reason"])
            if place not in self._breaks:
                self._breaks.add(place)
                yield facts


def graph_facts(record: Any) -> dict[str, Any]:
    """One record of Dynamo's, in our words."""
    function, line = str(record.co_name or ""), int(record.co_firstlineno or 0)
    resumed = _RESUMED.match(function)
    seconds = record.entire_frame_compile_time_s or (record.duration_us or 0) * 1e-6
    facts = {
        "graph": str(record.compile_id or ""),
        "function": resumed["function"] if resumed else function,
        "file": str(record.co_filename or ""),
        "line": int(resumed["line"]) if resumed else line,
        "resumed": bool(resumed),
        "backward": record.is_forward is False,
        "began": (record.start_time_us or 0) * 1000,
        "seconds": float(seconds),
        "stages": {name: getattr(record, field, None) for name, field in _STAGES.items()},
        "operators": record.graph_op_count,
        "again_because": _first_lines(record.recompile_reason),
        "gave_up": _first_lines(record.fail_reason),
    }
    facts["stages"] = {name: float(value) for name, value in facts["stages"].items() if value}
    return {name: value for name, value in facts.items() if value not in (None, "", {}, False)}


def break_facts(reason: Any) -> dict[str, Any]:
    """Where Dynamo went back to Python, and why, in its own words."""
    stack = [frame for frame in reason.user_stack if is_users(frame.filename)] or list(reason.user_stack)
    place = stack[-1] if stack else None
    function = _RESUMED.match(place.name) if place else None
    lines = [line.strip() for line in str(reason.reason).splitlines() if line.strip()]
    explained = [line.removeprefix("Explanation: ") for line in lines if line.startswith("Explanation: ")]
    hints = [line.removeprefix("Hint: ") for line in lines if line.startswith("Hint: ")]
    return {
        "file": str(place.filename) if place else "",
        "line": int(place.lineno or 0) if place else 0,
        "function": (function["function"] if function else place.name) if place else "",
        "reason": (lines[0] if lines else "")[:_MOST_TEXT],
        "explanation": " ".join(explained)[:_MOST_TEXT],
        "hint": (hints[0] if hints else "")[:_MOST_TEXT],
    }


def _first_lines(text: Any) -> str:
    lines = [line.strip() for line in str(text or "").splitlines() if line.strip()]
    return "; ".join(lines[:2])[:_MOST_TEXT]
