"""Strangers' programs in small: each script says in its first line what is true of it, and is run bare and watched.

    # truth: {step = 4, op = 'log', samples = [5]}

A planted line ends in `# planted`. A trial passes when the watched program did exactly what the bare one did, and when
everything misstep said about it is true.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import misstep

HERE = Path(__file__).resolve().parent
SOURCE = Path(misstep.__file__).resolve().parents[1]
LEVELS = ("guard", "module", "op")
SECONDS = 240
Kind = Literal["fault", "healthy", "skips", "evaluation", "state", "dies"]

_ALL_IS_WELL = re.compile(
    r"no NaN or Inf (was|were) (seen|born|found)(?P<rest>.*)|nothing (bad|wrong) was (seen|found)", re.I
)
_OWN_ERROR = re.compile(r"misstep itself failed|misstep: .*internal error|File \".*/misstep/(?!testing)", re.I)


@dataclass(frozen=True, slots=True)
class Trial:
    """One script and what is true of it."""

    path: Path
    truth: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def kind(self) -> Kind:
        kind: Kind = self.truth.get("kind", "fault")
        return kind

    @property
    def levels(self) -> tuple[str, ...]:
        """Where the fault can be seen at all; the others must not claim to have looked."""
        return tuple(self.truth.get("levels", LEVELS))

    @property
    def planted(self) -> set[int]:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return {number for number, line in enumerate(lines, 1) if line.endswith("# planted")}


@dataclass(slots=True)
class Outcome:
    """What became of a trial at one level; every list is empty when all went well."""

    trial: Trial
    level: str
    changed: list[str] = field(default_factory=list)
    """What the program did differently because it was watched."""
    false: list[str] = field(default_factory=list)
    """Sentences that are not true."""
    own: list[str] = field(default_factory=list)
    """Errors of misstep itself."""
    missed: list[str] = field(default_factory=list)
    """step, operator, line or samples that were not named right."""

    @property
    def problems(self) -> list[str]:
        return [
            f"{word}: {text}"
            for word in ("changed", "false", "own", "missed")
            for text in getattr(self, word)  # one list each
        ]


def trials(framework: str | None = None) -> list[Trial]:
    """Every script, in the order of its name."""
    found = []
    for path in sorted(HERE.glob("*/*.py")):
        if framework in (None, path.parent.name):
            first = path.read_text(encoding="utf-8").splitlines()[0]
            truth = tomllib.loads("truth = " + first.removeprefix("# truth:").strip())["truth"]
            found.append(Trial(path, truth))
    return found


def run_bare(trial: Trial) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        return _run([sys.executable, str(trial.path)], folder)


def run_watched(trial: Trial, level: str, bare: subprocess.CompletedProcess[str]) -> Outcome:
    """Run a trial under `misstep run` and judge everything it did and said."""
    outcome = Outcome(trial, level)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "misstep", "run", "--no-ui", "--level", level, sys.executable, str(trial.path)]
        watched = _run(command, folder)
        if watched.returncode != bare.returncode:
            outcome.changed.append(f"exit {watched.returncode}, bare {bare.returncode}: {watched.stderr[-300:]}")
        if watched.stdout != bare.stdout and not _also_bare(trial, watched.stdout):
            outcome.changed.append(f"printed {watched.stdout[-200:]!r}, bare {bare.stdout[-200:]!r}")
        shown = _run([sys.executable, "-m", "misstep", "show", "last", "--json"], folder)
        told = _run([sys.executable, "-m", "misstep", "show", "last"], folder)
    said = _of_misstep(watched.stderr)
    for text in (said, told.stdout):
        if trial.kind != "dies" and _OWN_ERROR.search(text):
            outcome.own.append(_around(_OWN_ERROR, text))
    noise = len(watched.stderr.splitlines()) - len(bare.stderr.splitlines())
    if noise > 30:
        outcome.own.append(f"{noise} more lines on stderr than the bare program printed")
    facts: dict[str, Any] = {}
    if shown.returncode in (0, 3):
        facts = json.loads(shown.stdout)
    judge(outcome, facts, said + "\n" + told.stdout)
    return outcome


def _also_bare(trial: Trial, printed: str) -> bool:
    """Some programs end in one of a few ways by themselves; did the bare one print this too?"""
    return any(run_bare(trial).stdout == printed for _ in range(4))


def judge(outcome: Outcome, facts: dict[str, Any], said: str) -> None:
    """Hold what misstep recorded and said against the truth."""
    trial, verdict = outcome.trial, facts.get("verdict")
    claim = _ALL_IS_WELL.search(said)
    limited = (
        claim is not None and trial.kind == "evaluation" and "evaluation and code between" in (claim["rest"] or "")
    )
    if trial.kind not in ("healthy", "dies") and claim is not None and not limited:
        outcome.false.append(_around(_ALL_IS_WELL, said))
    if trial.kind == "dies":
        if trial.truth["exception"] not in said:
            outcome.missed.append(f"the exception {trial.truth['exception']}")
        if not any(f"{trial.path.name}:{line}" in said for line in trial.planted):
            outcome.missed.append("the line it died at")
        return
    if trial.kind == "healthy":
        if verdict is not None:
            outcome.false.append(
                f"a verdict on a healthy run: {verdict['node']} {verdict['op']} step {verdict['step']}"
            )
        if trial.truth.get("unseen") and not re.search(r"no training (step )?was seen", said):
            outcome.false.append(f"its steps cannot be seen; said: {said[:200]}")
        wanted = trial.truth.get("steps", trial.truth.get("iterations"))
        if wanted is not None and not re.search(rf"\b{wanted} (steps|iterations|updates)", said):
            outcome.false.append(f"it made {wanted} steps; said: {_steps_said(said)}")
        return
    if trial.kind == "skips":
        if not re.search(rf"\b{trial.truth['attempts']}\b", said) or "skip" not in said.lower():
            outcome.missed.append(f"{trial.truth['attempts']} skipped updates; said: {said[:300]}")
        return
    if limited:
        outcome.missed.append("the NaN; said that evaluation was not checked")
        return
    if trial.kind in ("evaluation", "state"):
        if not re.search(r"\bnan\b", said, re.I):
            outcome.missed.append(f"the NaN; said: {said[:300]}")
        return
    if verdict is None:
        outcome.missed.append(f"no verdict; said: {said[:300]}")
        return
    _judge_verdict(outcome, verdict)


def _judge_verdict(outcome: Outcome, verdict: dict[str, Any]) -> None:
    trial, truth = outcome.trial, outcome.trial.truth
    step = truth.get("step", truth.get("iteration"))
    allowed = {step, step + 1} if truth.get("after_update") else {step}
    if verdict["step"] not in allowed:
        outcome.missed.append(f"step: said {verdict['step']}, is {step}")
    if "op" in truth and truth["op"] not in (verdict["op"] or "").lower():
        outcome.missed.append(f"operator: said {verdict['op'] or verdict['node']}, is {truth['op']}")
    if "phase" in truth and verdict["phase"] != truth["phase"]:
        outcome.missed.append(f"phase: said {verdict['phase']}, is {truth['phase']}")
    if trial.planted:
        source = verdict["source"] or {}
        if source.get("line") not in trial.planted or not str(source.get("file")).endswith(trial.path.name):
            outcome.missed.append(f"line: said {source.get('file')}:{source.get('line')}, is {sorted(trial.planted)}")
    if "samples" in truth:
        named = [
            int(one)
            for one in re.findall(r"samples? ([\d, and]+?) of", verdict["note"] or "")[:1]
            for one in re.findall(r"\d+", one)
        ]
        if named != truth["samples"]:
            outcome.missed.append(f"samples: said {verdict['note']!r}, are {truth['samples']}")


def _run(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MISSTEP_")}
    environment = {**kept, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "COLUMNS": "240"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def _of_misstep(stderr: str) -> str:
    """From the first line that is ours: what the program itself wrote is its own."""
    lines = stderr.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("misstep:")), len(lines))
    return "\n".join(lines[first:])


def _around(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    assert found is not None
    return text[max(0, found.start() - 80) : found.end() + 160].replace("\n", " ")


def _steps_said(said: str) -> str:
    return "; ".join(re.findall(r"\d+ steps?[^\n;]*", said)[:2])
