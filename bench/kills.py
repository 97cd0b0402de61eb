"""kill -9 of a recording process at random points: whether a step it had finished is ever lost, or a reader stumbles.

    python bench/kills.py --kills 1000
    python bench/kills.py --kills 20 --json

A process records steps, hits, whole tensors and verdicts, and says each step when it is done. It is killed at a moment
chosen by a seeded generator; then the run is opened, verified, listed and shown. The control is a process that is let
go to its end.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Rows, bench, options

ROOT = Path(__file__).parents[1]
RECORD = """
import pathlib, sys
import small_run
writer = small_run.begin(pathlib.Path(sys.argv[1]))
for step in range(1, int(sys.argv[2]) + 1):
    small_run.train(writer, step, step)
    print(step, flush=True)
writer.end("finished", 0)
"""


def killed(run: Path, steps: int, after: float | None) -> int:
    """The last step the process said it had finished."""
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests" / "store")))
    process = subprocess.Popen(
        [sys.executable, "-c", RECORD, str(run), str(steps)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.stdout is not None
    last = int(process.stdout.readline() or 0)  # from here on it records
    if after is not None:
        time.sleep(after)
        process.kill()
    said = process.stdout.read().split("\n")[:-1]  # a number without its line end was not said
    process.wait()
    return int(said[-1]) if said else last


def left(run: Path, said: int) -> tuple[int, int]:
    """(finished steps that are not there, commands that stumbled) of what a killed process left behind."""
    from misstep.cli import main
    from misstep.store.reading.reader import open_run

    read = open_run(run)
    there = {step.number for step in read.steps()}
    lost = len(set(range(1, said + 1)) - there)
    stumbled = sum("checksum" in sentence for sentence in read.verify())
    for command in (["show", str(run)], ["ls", "--dir", str(run.parent)]):
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                main(command)
        except Exception:
            stumbled += 1
    return lost, stumbled


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        control = left(Path(folder) / "whole", killed(Path(folder) / "whole", 200, None))
        lost = stumbled = steps = 0
        for number in range(given.kills):
            run = Path(folder) / f"kills-{number}" / "run"
            run.parent.mkdir()
            said = killed(run, 1_000_000, chance.random() * 0.3)
            more_lost, more_stumbled = left(run, said)
            lost, stumbled, steps = lost + more_lost, stumbled + more_stumbled, steps + said
    rows: Rows = [
        {"case": "kills", "value": given.kills, "unit": "processes"},
        {"case": "steps they had finished", "value": steps, "unit": "steps"},
        {"case": "finished steps lost", "value": lost, "unit": "steps"},
        {"case": "commands that stumbled", "value": stumbled, "unit": "commands"},
    ]
    return float(sum(control)), rows


if __name__ == "__main__":
    parser = options(__doc__ or "")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    bench(parser, measure)
