"""Every planted fault in every form of compile, bare and watched: `make compiled-sweep`.

python tests/compiled/sweep.py --forms model function --levels op
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.compiled.programs import BACKENDS, FAULTS, FORMS, TRUTHS, program

import misstep

SOURCE = Path(misstep.__file__).resolve().parents[1]
LEVELS = ("guard", "module", "op")


@dataclass
class Story:
    """One program at some levels, and what was wrong with what happened."""

    fault: str
    form: str
    backend: str
    problems: dict[str, list[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.fault} · {self.form} · {self.backend}"


def play(story: Story, levels: tuple[str, ...]) -> Story:
    """Run it bare and at each level."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        script = folder / "train.py"
        script.write_text(program(story.fault, story.form, story.backend), encoding="utf-8")
        bare = run([sys.executable, "train.py"], folder)
        assert bare.returncode == 0, bare.stderr[-2000:]
        for level in levels:
            story.problems[level] = _watched(story, script, level, bare)
    return story


def _watched(story: Story, script: Path, level: str, bare: subprocess.CompletedProcess[str]) -> list[str]:
    ours = [sys.executable, "-m", "misstep"]
    folder = script.parent
    watched = run([*ours, "run", "--no-ui", "--level", level, sys.executable, "train.py"], folder)
    shown = run([*ours, "show", "last", "--json"], folder)
    problems = []
    if watched.stdout != bare.stdout:
        problems.append(f"weights: {watched.stdout!r}, bare {bare.stdout!r}")
    if "internal error" in watched.stderr:
        problems.append(next(line for line in watched.stderr.splitlines() if "internal error" in line))
    if not shown.stdout.startswith("{"):
        return [*problems, f"nothing shown: {watched.stderr[-600:]}"]
    return problems + judged(story, script, json.loads(shown.stdout).get("verdict"))


def judged(story: Story, script: Path, verdict: dict[str, Any] | None) -> list[str]:
    """What is not true of a verdict."""
    truth = TRUTHS[story.fault]
    if verdict is None:
        return ["no verdict"]
    lines = script.read_text(encoding="utf-8").splitlines()
    planted = [number for number, line in enumerate(lines, 1) if line.endswith("# planted")]
    wrong = []
    if verdict["step"] != truth.step:
        wrong.append(f"step {verdict['step']}, is {truth.step}")
    if not re.search(truth.op, verdict["op"] or ""):
        wrong.append(f"operator {verdict['op'] or verdict['node']}, is {truth.op}")
    if verdict["phase"] != truth.phase and not (truth.phase == "loss" and story.form == "function"):
        wrong.append(f"phase {verdict['phase']}, is {truth.phase}")
    source = verdict["source"] or {}
    if source.get("line") not in planted or not str(source.get("file")).endswith("train.py"):
        wrong.append(f"line {source.get('file')}:{source.get('line')}, is {planted}")
    if "_orig_mod" in str(verdict["node"]):
        wrong.append(f"node {verdict['node']}")
    return wrong


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MISSTEP_")}
    environment = {**kept, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "COLUMNS": "240"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", nargs="*", default=FAULTS)
    parser.add_argument("--forms", nargs="*", default=FORMS)
    parser.add_argument("--backends", nargs="*", default=BACKENDS)
    parser.add_argument("--levels", nargs="*", default=LEVELS)
    given = parser.parse_args()
    failed = total = 0
    for fault, form, backend in product(given.faults, given.forms, given.backends):
        story = play(Story(fault, form, backend), tuple(given.levels))
        for level, problems in story.problems.items():
            total += 1
            failed += bool(problems)
            print(f"{'no' if problems else 'ok':3} {story.name} · {level}", *problems, sep="  ", flush=True)
    print(f"{total - failed} of {total} as planted")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
