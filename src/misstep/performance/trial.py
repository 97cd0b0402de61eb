"""A change, tried: the user's recorded command for a bounded number of steps, with the change and without, in turns.

    control  change │ change  control │ …        neighbours share the machine's mood, and neither is always first

Both are processes of their own, so a change that kills one (an instruction this CPU lacks, too little memory) ends
there. Nothing is kept that does not measure faster by more than the spread of the runs, and by more than 1 %.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from misstep.capture.attach import child_environment
from misstep.errors import PerformanceError
from misstep.performance.changes import Change, as_environment, as_setting
from misstep.performance.report import expected_step
from misstep.performance.steps import Floats, steady_ms
from misstep.sentences.speed import advice as words
from misstep.sentences.text import Sentence
from misstep.settings import Settings
from misstep.store.layout import is_run, rank_paths
from misstep.store.reading.reader import Run, open_run
from misstep.store.runs import new_run_directory
from misstep.store.tracefile import read_trace

STEPS, SECONDS, PAIRS = 60, 120.0, 2
LEAST_GAIN = 0.01
_FEWEST = 8
"""Steady steps a run needs to count."""
_GRACE_SECONDS = 5.0
FOLDER, RESULTS = "trials", "results.jsonl"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process of a trial."""

    path: Path
    ms: Floats
    """Steady steps of its slowest rank."""
    exit_code: int
    timed_out: bool
    carried_out: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """What a change came to."""

    name: str
    predicted: float | None
    expected: float | None
    """Predicted once more from the first run without the change, on the machine as busy as it is now."""
    before: float | None
    """Milliseconds of a step without the change, measured beside it."""
    after: float | None
    noise: float
    """Half of the interval (two standard errors) of after/before."""
    kept: bool
    outcome: Sentence
    line: Sentence | None
    """What to write where; only of what is kept."""


def try_change(
    run: Run,
    change: Change,
    *,
    predicted: float | None = None,
    steps: int = STEPS,
    seconds: float = SECONDS,
    pairs: int = PAIRS,
    progress: Callable[[int, int], None] = lambda number, total: None,
) -> Trial:
    """Measure a change on the command of a run; the result is also written into the run's folder."""
    attempts: dict[bool, list[Attempt]] = {False: [], True: []}
    expected: float | None = None
    order = [with_it for pair in range(pairs) for with_it in ((False, True) if pair % 2 == 0 else (True, False))]
    for number, with_it in enumerate(order, 1):
        progress(number, len(order))
        attempt = run_once(run, [change] if with_it else [], steps=steps, seconds=seconds)
        attempts[with_it].append(attempt)
        if number == 1 and not with_it and is_run(attempt.path):
            expected = expected_step(open_run(attempt.path), change)  # before the change is measured
        if with_it and (_died(attempt) or not (attempt.carried_out or change.kind == "environment")):
            break  # a second time would tell nothing new
    trial = judge(change, attempts[False], attempts[True], predicted=predicted, steps=steps, seconds=seconds)
    trial = replace(trial, expected=expected)
    _write(run, change, trial)
    return trial


def judge(
    change: Change,
    without: Sequence[Attempt],
    with_it: Sequence[Attempt],
    *,
    predicted: float | None,
    steps: int,
    seconds: float,
) -> Trial:
    """Kept or not, and why, by what was measured alone."""
    open_question = _undecided(change, without, with_it, steps=steps, seconds=seconds)
    before, before_error = _mean([one.ms for one in without])
    after, after_error = _mean([one.ms for one in with_it])
    if open_question is not None or before is None or after is None:
        said = open_question or words.TOO_FEW_STEPS.of(steps=0)
        return Trial(change.name, predicted, None, before, after, 0.0, False, said, None)
    noise = 2 * after / before * float(np.hypot(before_error / before, after_error / after))
    gain = 1 - after / before
    if gain > max(LEAST_GAIN, noise):
        said = words.KEPT.of(before=before, after=after, gain=gain)
        return Trial(change.name, predicted, None, before, after, noise, True, said, line_of(change))
    if -gain > max(LEAST_GAIN, noise):
        said = words.SLOWER.of(before=before, after=after, loss=-gain)
    else:
        said = words.ROLLED_BACK.of(before=before, after=after, noise=noise)
    return Trial(change.name, predicted, None, before, after, noise, False, said, None)


def line_of(change: Change) -> Sentence:
    """What a user writes to keep a change."""
    if change.kind == "environment":
        return words.WRITE_VARIABLE.of(name=change.name)
    if change.kind == "loader" and change.source and change.source.get("file"):
        values = ", ".join(f"{name}={value}" for name, value in change.values.items())
        source = change.source
        return words.WRITE_LINE.of(file=source["file"], line=source["line"], name=values, code=source.get("code", ""))
    return words.WRITE_CODE.of(code=_CODE.get(next(iter(change.values)), change.name).format(**change.values))


_CODE = {
    "fused": "optimizer = torch.optim.…(…, fused=True)",
    "foreach": "optimizer = torch.optim.…(…, foreach=True)",
    "autocast": 'with torch.autocast("cpu", dtype=torch.{autocast}): output = model(x)',
    "channels_last": "model.to(memory_format=torch.channels_last); x = x.to(memory_format=torch.channels_last)",
    "compile": "model = torch.compile(model)",
    "bucket_cap_mb_list": "DistributedDataParallel(…, bucket_cap_mb_list={bucket_cap_mb_list})",
    "mode": "mindspore.set_context(mode=…)  # {mode}",
    "jit_level": 'mindspore.set_context(jit_config={{"jit_level": "{jit_level}"}})',
    "sink": "model.train(…, dataset_sink_mode={sink})",
    "num_parallel_workers": "num_parallel_workers={num_parallel_workers} in map, batch and GeneratorDataset",
}


def results_of(run: Path) -> list[dict[str, Any]]:
    """Every trial that was made of a run, in order."""
    try:
        lines = (run / FOLDER / RESULTS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines if line.endswith("}")]


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_once(run: Run, changes: list[Change], *, steps: int, seconds: float) -> Attempt:
    if not run.info.command:
        raise PerformanceError(words.NO_COMMAND.of(run=run.name))
    started = run.info.command
    command = tuple(shlex.split(started[0])) if len(started) == 1 else started
    given: dict[str, Any] = {
        "level": "off",
        "record": False,
        "replay": False,
        "recommended": False,
        "last_step": steps,
        "change": as_setting(changes),
        "hub": "",
    }
    place = new_run_directory(run.path / FOLDER, "with" if changes else "without")
    environment = child_environment(command, Settings(given), set(given), place) | as_environment(changes)
    with open(place / "output.txt", "ab") as output:
        child = subprocess.Popen(
            command,
            cwd=run.info.directory or None,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    code, timed_out = _await(child, seconds)
    if not is_run(place):  # it ended before its first step
        return Attempt(place, np.empty(0), code, timed_out, False)
    made = open_run(place)
    runs = [steady_ms(read_trace(rank_paths(place, rank).trace).steps) for rank in made.ranks]
    longest = max(runs, key=lambda ms: float(ms.mean()) if len(ms) else 0.0, default=np.empty(0))
    skipped = longest[max(2, len(longest) // 5) :]  # batches made ahead while the first steps warmed up
    return Attempt(place, skipped, code, timed_out, bool(made.events("change")))


def _await(child: subprocess.Popen[bytes], seconds: float) -> tuple[int, bool]:
    try:
        return child.wait(seconds), False
    except subprocess.TimeoutExpired:
        pass
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
        try:
            return child.wait(_GRACE_SECONDS), True
        except subprocess.TimeoutExpired:
            continue
    return child.wait(), True


def _died(attempt: Attempt) -> bool:
    return attempt.exit_code != 0 and not attempt.timed_out


def _undecided(
    change: Change, without: Sequence[Attempt], with_it: Sequence[Attempt], *, steps: int, seconds: float
) -> Sentence | None:
    for one in (*without, *with_it):
        if _died(one):
            return words.DIED.of(how=_how(one.exit_code))
    if change.kind != "environment" and not all(one.carried_out for one in with_it):
        return words.NOT_APPLIED.of()
    fewest = min((len(one.ms) for one in (*without, *with_it)), default=0)
    if fewest >= _FEWEST:
        return None
    if any(one.timed_out for one in (*without, *with_it)):
        return words.TIMED_OUT.of(steps=steps, seconds=seconds)
    return words.TOO_FEW_STEPS.of(steps=fewest)


def _how(code: int) -> Sentence:
    number = -code if code < 0 else code - 128 if code > 128 else 0
    try:
        return words.SIGNAL.of(name=signal.Signals(number).name)
    except ValueError:
        return words.EXIT_CODE.of(code=code)


def _mean(runs: Sequence[Floats]) -> tuple[float | None, float]:
    """Milliseconds of a step and its standard error, over several runs: the spread within runs, in blocks, since
    neighbouring steps are alike, or between runs, whichever is larger."""
    kept = [np.minimum(ms, np.percentile(ms, 98)) for ms in runs if len(ms)]
    if not kept:
        return None, 0.0
    means = np.array([ms.mean() for ms in kept])
    blocks = [part.mean() for ms in kept for part in np.array_split(ms, min(6, len(ms)))]
    within = float(np.std(blocks, ddof=1) / np.sqrt(len(blocks))) if len(blocks) > 1 else 0.0
    between = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0
    return float(means.mean()), max(within, between)


def _write(run: Run, change: Change, trial: Trial) -> None:
    facts = {
        "time": time.time(),
        "name": trial.name,
        "kind": change.kind,
        "values": change.values,
        "predicted": trial.predicted,
        "expected": trial.expected,
        "before": trial.before,
        "after": trial.after,
        "noise": trial.noise,
        "kept": trial.kept,
        "outcome": trial.outcome.plain() | {"text": trial.outcome.english},
        "line": trial.line.plain() | {"text": trial.line.english} if trial.line is not None else None,
    }
    folder = run.path / FOLDER
    folder.mkdir(exist_ok=True)
    with open(folder / RESULTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(facts, ensure_ascii=False) + "\n")
