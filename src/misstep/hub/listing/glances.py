"""What the list shows of a run that nobody tells about: how many hits it had, the curve of its last losses, and
what was found: the first bad value, else the first finding, else the exception.

Read from the ends of the journals without decoding what lies between, and kept as long as the journals do not grow.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misstep.protocol.views import Number, number
from misstep.store.journal import unseal
from misstep.store.layout import rank_paths
from misstep.store.stepline import steps_before

LOSSES = 64
_HIT = b'\n{"kind":"hit"'
_VERDICT, _FINDING, _EXCEPTION = (b'\n{"kind":"%s"' % kind for kind in (b"verdict", b"finding", b"exception"))
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Glance:
    """A finished run in three facts."""

    hits: int = 0
    losses: tuple[Number | None, ...] = ()
    found: str = ""
    found_at: float = 0.0


class Glances:
    """Glances at the runs of a folder, each made once."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, ...], Glance]] = {}

    def of(self, run: Path, ranks: Sequence[int]) -> Glance:
        journals = [rank_paths(run, rank).journal for rank in ranks]
        sizes = tuple(_size(journal) for journal in journals)
        known = self._known.get(run)
        if known is None or known[0] != sizes:
            looks = [_look(journal) for journal in journals]
            # The rank that failed first is the one to name: the others fail because it is gone.
            first = min((look for look in looks if look.found), key=lambda look: look.found_at, default=Glance())
            hits = sum(look.hits for look in looks)
            glance = Glance(hits, looks[0].losses if looks else (), first.found, first.found_at)
            known = self._known[run] = (sizes, glance)
        return known[1]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _look(journal: Path) -> Glance:
    try:
        with open(journal, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return Glance(_count(data, _HIT), _losses(data), *_found(data))
    except (OSError, ValueError):  # no journal yet, or an empty one
        return Glance()


def _count(data: mmap.mmap, mark: bytes) -> int:
    found, at = 0, data.find(mark)
    while at >= 0:
        found += 1
        at = data.find(mark, at + len(mark))
    return found


def _found(data: mmap.mmap) -> tuple[str, float]:
    """A sentence, and when it was written."""
    for mark, said in ((_VERDICT, _verdict), (_FINDING, _finding), (_EXCEPTION, _exception)):
        event = _first(data, mark)
        if event:
            return said(event)[:_LONGEST], float(event.get("time", 0.0))
    return "", 0.0


def _verdict(event: dict[str, Any]) -> str:
    verdict = event.get("verdict", {})
    return f"first bad value: step {verdict.get('step')}, {verdict.get('phase')}, {verdict.get('node')}"


def _finding(event: dict[str, Any]) -> str:
    return str(event.get("finding", {}).get("title", ""))


def _exception(event: dict[str, Any]) -> str:
    return f"{event.get('type', '')}: {str(event.get('text', '')).partition(chr(10))[0]}"


def _first(data: mmap.mmap, mark: bytes) -> dict[str, Any]:
    at = data.find(mark)
    return (unseal(data[at + 1 : data.find(b"\n", at + 1)]) or {}) if at >= 0 else {}


def _losses(data: mmap.mmap) -> tuple[Number | None, ...]:
    """Of the last steps, walking back from the end."""
    losses: list[Number | None] = []
    for line in steps_before(data, data.rfind(b"\n") + 1):
        plain = unseal(line)
        loss = None if plain is None else plain.get("step", {}).get("loss")
        if loss is not None:
            losses.append(number(float(loss)))
        if len(losses) == LOSSES:
            break
    return tuple(losses[::-1])
