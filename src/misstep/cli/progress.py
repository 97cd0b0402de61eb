"""What a run has come to so far: its journals followed line by line, of which only the sums are kept.

A week of training writes millions of lines; whoever watches it from the terminal holds a handful of numbers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from misstep.cli.render.text import count_hits, number
from misstep.core.finding import Finding, Verdict
from misstep.core.run import Step
from misstep.core.seen import Seen
from misstep.sentences.cli import general as words
from misstep.store.codec import decode
from misstep.store.journal import LineReader
from misstep.store.layout import rank_paths, ranks_in

RATE_STEPS = 50
"""Steps over which the speed is averaged."""


class Progress:
    """The sums of a run that is being written."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.last: Step | None = None
        """The last step of the lowest rank."""
        self.hits: Counter[str] = Counter()
        """By severity, over all ranks."""
        self.findings: list[Finding] = []
        self.warnings: list[str] = []
        self.lost: dict[int, int] = {}
        """Records that could not be kept, by rank."""
        self._sums = Seen()
        self.paused = False
        self._journals: dict[int, LineReader] = {}
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        self._ended: set[int] = set()
        """Ranks that have said their last word."""
        self._recent: deque[Step] = deque(maxlen=RATE_STEPS)

    def look(self) -> None:
        """Take in what was written since the last look."""
        for rank in ranks_in(self.run):
            journal = self._journals.setdefault(rank, LineReader(rank_paths(self.run, rank).journal))
            for line in journal.new_lines():
                take_in = _EVENTS.get(line.get("kind", ""))
                if take_in is not None:
                    try:
                        take_in(self, rank, line)
                    except (KeyError, TypeError, ValueError):
                        pass  # a line from a later misstep: the numbers of the others are still worth telling

    @property
    def seen(self) -> bool:
        """True once a process of the command has trained."""
        return bool(self._journals)

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted(self._journals))

    @property
    def seen_of_it(self) -> Seen:
        """What may be said of NaN and Inf."""
        silent = len(self._journals) - len(self._ended)
        return replace(self._sums, hits=self.hits.total(), lost=sum(self.lost.values()), broken_off=silent)

    @property
    def verdict(self) -> Verdict | None:
        """Where the first bad value of all ranks was born."""
        return min(self._verdicts.values(), key=lambda verdict: verdict.moment, default=None)

    @property
    def steps_per_second(self) -> float | None:
        if len(self._recent) < 2:
            return None
        seconds = self._recent[-1].time - self._recent[0].time
        return (len(self._recent) - 1) / seconds if seconds > 0 else None

    @property
    def overhead(self) -> float | None:
        """Share of the time of the recent steps that misstep took."""
        total = sum(step.seconds for step in self._recent)
        return sum(step.overhead * step.seconds for step in self._recent) / total if total > 0 else None

    def sentence(self) -> str:
        """'step 412 · loss 0.31 · 8.2 it/s · overhead 1.4% · 2 warnings'."""
        if self.last is None:
            return words.STATUS_WAITING()
        parts = [words.STATUS_STEP(step=f"{self.last.number:,}")]
        if self.last.loss is not None:
            parts.append(words.STATUS_LOSS(loss=number(self.last.loss)))
        if self.steps_per_second is not None:
            parts.append(words.STATUS_RATE(rate=number(self.steps_per_second, digits=3)))
        if self.overhead is not None:
            parts.append(words.STATUS_OVERHEAD(percent=f"{self.overhead:.1%}"))
        if len(self._journals) > 1:
            parts.append(words.RANKS(count=len(self._journals)))
        parts.append(count_hits(self.hits))
        if self.paused:
            parts.append(words.STATUS_PAUSED())
        return "misstep: " + " · ".join(parts)

    def _step(self, rank: int, line: dict[str, Any]) -> None:
        step = decode(Step, line["step"])
        self._sums.add(step, rank)
        if rank == min(self._journals):
            self.last = step
            self._recent.append(step)

    def _skipped(self, rank: int, line: dict[str, Any]) -> None:
        self._sums.skip(rank)

    def _hit(self, rank: int, line: dict[str, Any]) -> None:
        self.hits[str(line["hit"].get("severity", "warning"))] += 1

    def _verdict(self, rank: int, line: dict[str, Any]) -> None:
        verdict = decode(Verdict, line["verdict"])
        self._verdicts[rank, verdict.step] = verdict

    def _finding(self, rank: int, line: dict[str, Any]) -> None:
        self.findings.append(decode(Finding, line["finding"]))

    def _warning(self, rank: int, line: dict[str, Any]) -> None:
        self.warnings.append(str(line["text"]))

    def _lost(self, rank: int, line: dict[str, Any]) -> None:
        self.lost[rank] = sum(line["counts"].values())

    def _end(self, rank: int, line: dict[str, Any]) -> None:
        self._ended.add(rank)

    def _state(self, rank: int, line: dict[str, Any]) -> None:
        self.paused = line.get("state") == "paused"


_EVENTS: dict[str, Callable[[Progress, int, dict[str, Any]], None]] = {
    "step": Progress._step,
    "hit": Progress._hit,
    "verdict": Progress._verdict,
    "finding": Progress._finding,
    "skipped": Progress._skipped,
    "warning": Progress._warning,
    "lost": Progress._lost,
    "state": Progress._state,
    "end": Progress._end,
}
