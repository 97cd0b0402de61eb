"""What a trial's run says while it is written: its steps, its scalars, the first bad value, and what was found."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from misstep.core.finding import Finding, Verdict
from misstep.store.codec import decode
from misstep.store.journal import LineReader
from misstep.store.layout import rank_paths, ranks_in
from misstep.tuning.reporting import REPORTED

Points = list[tuple[int, float]]


class Follower:
    """The journals of a run, line by line, of which the curves are kept."""

    def __init__(self, run: Path, summary: Path | None = None, *, most: int | None = None) -> None:
        """What lies behind `most` steps is left out: a quick trial has gone on before it could be ended."""
        self.run, self.summary, self._most = run, summary, most
        self.curves: defaultdict[str, Points] = defaultdict(list)
        """By name: loss, step_seconds, and every recorded scalar."""
        self.steps = 0
        self.verdict = ""
        """The sentence of the first bad value."""
        self.errors: list[str] = []
        """Findings of severity error, a sentence each."""
        self._journals: dict[int, LineReader] = {}
        self._lines = [_PlainLines(run / REPORTED)]
        if summary is not None:
            self._lines.append(_PlainLines(summary / "scalars.jsonl"))

    def look(self) -> bool:
        """Take in what was written since the last look; True when there was something."""
        new = False
        for rank in ranks_in(self.run):
            journal = self._journals.setdefault(rank, LineReader(rank_paths(self.run, rank).journal))
            for line in journal.new_lines():
                take_in = _EVENTS.get(str(line.get("kind", "")))
                if take_in is not None:
                    new = True
                    try:
                        take_in(self, rank, line)
                    except (KeyError, TypeError, ValueError):
                        continue  # a line of a later misstep
        for lines in self._lines:
            for line in lines.new():
                new = True
                self._scalar(0, line)
        return new

    def finish(self) -> None:
        """The last look, and what MindSpore's own SummaryCollector left."""
        self.look()
        if self.summary is not None and self.summary.is_dir():
            self._take_in_summary(self.summary)

    def curve(self, name: str) -> Points:
        """A curve by its name; a metric may be recorded as eval/name."""
        for known in (name, f"eval/{name}", name.lower(), f"eval/{name.lower()}"):
            if self.curves.get(known):
                return self.curves[known]
        return []

    def _take_in_summary(self, folder: Path) -> None:
        from misstep.errors import FormatError
        from misstep.store.foreign.mindspore.summary import looks_like_summary, read_summary

        try:
            if not looks_like_summary(folder):
                return
            summary = read_summary(folder)
        except (OSError, FormatError):
            return
        for tag, points in summary.scalars.items():
            self.curves[tag].extend((point.step, point.value) for point in points)
        for name, value in metrics_of(summary.lineage).items():
            self.curves[name].append((self.steps, value))

    def _step(self, rank: int, line: dict[str, Any]) -> None:
        step = line["step"]
        number = int(step["number"])
        if rank != min(self._journals) or number < 1 or self._is_behind(number):
            return
        self.steps = max(self.steps, number)
        for name, key in (("loss", "loss"), ("step_seconds", "seconds")):
            if step.get(key) is not None:
                self.curves[name].append((number, _number(step[key])))

    def _scalar(self, rank: int, line: dict[str, Any]) -> None:
        step = int(line.get("step") or self.steps)
        if not self._is_behind(step):
            self.curves[str(line["tag"])].append((step, _number(line["value"])))

    def _is_behind(self, step: int) -> bool:
        return self._most is not None and step > self._most

    def _verdict(self, rank: int, line: dict[str, Any]) -> None:
        self.verdict = self.verdict or decode(Verdict, line["verdict"]).sentence()

    def _finding(self, rank: int, line: dict[str, Any]) -> None:
        finding = decode(Finding, line["finding"])
        if finding.severity == "error":
            self.errors.append(finding.title)


_EVENTS: dict[str, Callable[[Follower, int, dict[str, Any]], None]] = {
    "step": Follower._step,
    "scalar": Follower._scalar,
    "verdict": Follower._verdict,
    "finding": Follower._finding,
}


def metrics_of(lineage: Any) -> dict[str, float]:
    """The numbers of an evaluation, wherever the lineage keeps them."""
    found: dict[str, float] = {}
    if isinstance(lineage, dict):
        for name, value in lineage.items():
            if isinstance(value, bool):
                continue
            if isinstance(value, (int, float)):
                found[str(name)] = float(value)
            elif isinstance(value, str) and value.startswith("{"):
                try:
                    found.update(metrics_of(json.loads(value)))
                except ValueError:
                    continue
            else:
                found.update(metrics_of(value))
    return found


class _PlainLines:
    """JSON lines without a checksum, as they are added to a file."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def new(self) -> list[dict[str, Any]]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        self._offset += end
        found = []
        for line in data[:end].split(b"\n")[:-1]:
            try:
                plain = json.loads(line)
            except ValueError:
                continue
            if isinstance(plain, dict) and "tag" in plain and "value" in plain:
                found.append(plain)
        return found


def _number(value: Any) -> float:
    """A float, whichever way the journal carries NaN and infinity."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
