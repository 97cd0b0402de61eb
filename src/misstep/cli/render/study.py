"""How a study looks in a terminal: the bar while it runs, the table, the best trial."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table as RichTable

from misstep.cli.render.text import number, word_for
from misstep.cli.status_line import StatusLine, can_draw
from misstep.sentences.cli import tune as words
from misstep.sentences.text import revived, said
from misstep.tuning.results import command_of
from misstep.tuning.storage.table import Table, TrialRow
from misstep.tuning.studyfile.study import Study
from misstep.tuning.worker import News


def values_text(values: Mapping[str, Any]) -> str:
    """'lr=0.01 width=32'."""
    return " ".join(f"{name}={number(value) if isinstance(value, float) else value}" for name, value in values.items())


def why_of(trial: TrialRow) -> str:
    """Why a trial ended, in the reader's language."""
    return said(revived(trial.attributes.get("said"), str(trial.attributes.get("why") or "")))


def trials_table(table: Table, *, most: int) -> RichTable:
    """The last trials, a line each."""
    shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    shown.add_column(words.COLUMN_TRIAL(), justify="right")
    shown.add_column(words.COLUMN_STATE(), no_wrap=True)
    for target in table.targets:
        shown.add_column(target, justify="right")
    for name in table.parameters:
        shown.add_column(name, justify="right")
    shown.add_column(words.COLUMN_RUN(), no_wrap=True)
    shown.add_column(words.COLUMN_WHY(), overflow="fold")
    best = {trial.number for trial in table.best()}
    for trial in table.trials[-most:]:
        values = [number(value) for value in trial.values or ()] or [""] * len(table.targets)
        params = [_cell(trial.params.get(name)) for name in table.parameters]
        shown.add_row(
            str(trial.number),
            word_for(words.STATES, trial.shown_state),
            *(values if len(values) == len(table.targets) else [""] * len(table.targets)),
            *params,
            str(trial.attributes.get("run") or ""),
            why_of(trial),
            style="bold" if trial.number in best else "",
        )
    return shown


def _cell(value: Any) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else str(value)


def counts(table: Table) -> dict[str, int]:
    found: dict[str, int] = {}
    for trial in table.trials:
        found[trial.shown_state] = found.get(trial.shown_state, 0) + 1
    return found


def best_lines(table: Table, study: Study | None = None) -> list[str]:
    """How it stands, the best trial, and what to do with it."""
    how_many = counts(table)
    lines = [words.DONE(**{state: how_many.get(state, 0) for state in ("complete", "pruned", "failed")})]
    best = table.best()
    if not best:
        return [*lines, words.NO_BEST()]
    if len(table.directions) > 1:
        lines.append(words.BEST_FRONT(count=len(best)))
    for trial in best[:10]:
        value = " ".join(number(one, digits=6) for one in trial.values or ())
        lines.append(words.BEST(number=trial.number, target=" ".join(table.targets), value=value))
        lines.append(f"  {values_text(trial.params)}")
    if best[0].attributes.get("run"):
        lines.append(words.LOOK(run=best[0].attributes["run"]))
    if study is not None:
        lines.append(words.TRAIN(command=command_of(study, best[0])))
    return lines


class Bar:
    """One line at the bottom of a terminal: how many are done, the best so far, the time left."""

    def __init__(self, study: Study, table: Table, wanted: int, *, draw: bool) -> None:
        self._name, self._wanted = study.name, wanted
        self._sign = -1.0 if study.targets[0].goal == "maximize" else 1.0
        self._single = len(study.targets) == 1
        self._done = sum(trial.state in ("complete", "pruned") for trial in table.trials)
        self._pruned = sum(trial.state == "pruned" for trial in table.trials)
        best = table.best() if self._single else []
        self._best: tuple[float, int] | None = ((best[0].values or [0.0])[0], best[0].number) if best else None
        self._running = 0
        self._here = 0
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._line = StatusLine(sys.stderr) if draw and can_draw(sys.stderr) else None

    def take_in(self, news: News) -> bool:
        """Count it; True when this trial is the best so far."""
        with self._lock:
            is_best = self._count(news)
            if self._line is not None:
                self._line.draw(self.sentence())
            return is_best

    def sentence(self) -> str:
        parts = [
            words.STATUS(
                name=self._name, done=self._done, trials=self._wanted, running=self._running, pruned=self._pruned
            )
        ]
        if self._best is not None:
            parts.append(words.STATUS_BEST(value=number(self._best[0]), number=self._best[1]))
        if self._here and self._done < self._wanted:
            each = (time.monotonic() - self._begin) / self._here
            parts.append(words.STATUS_LEFT(time=_duration(each * (self._wanted - self._done))))
        width = 20
        filled = round(width * min(1.0, self._done / self._wanted))
        return f"misstep: {'█' * filled}{'░' * (width - filled)} " + " · ".join(parts)

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _count(self, news: News) -> bool:
        if news.kind == "began":
            self._running += 1
        if news.kind != "ended" or news.outcome is None:
            return False
        self._running -= 1
        if news.outcome.state == "FAIL":
            return False
        self._done += 1
        self._here += 1
        self._pruned += news.outcome.state == "PRUNED"
        if news.outcome.values is None or not self._single:
            return False
        value = news.outcome.values[0]
        if self._best is None or self._sign * value < self._sign * self._best[0]:
            self._best = (value, news.number)
            return True
        return False


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
