"""What a trial costs beyond its command, how much better than chance the search is, and what pruning saves.

    python bench/tune.py                 a table
    python bench/tune.py --json          one object: {"control": …, "rows": [{"case", "value", "unit"}]}
    python bench/tune.py --seeds 30      of the six recorded trainings; the Gaussian process takes 2 s a seed of each

Overhead is wall time: `sh -c 'echo value 0.5'` by itself, and as a trial on the journal, in turns; the control is the
command against itself. The search is replayed from recorded curves (tests/tuning/problems.py).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Rows, bench, options

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tuning"))

from problems import problems
from replaying import replay

from misstep.tuning.storage.places import Place
from misstep.tuning.storage.table import StudyReader
from misstep.tuning.studyfile import parse_study
from misstep.tuning.worker import Worker

COMMAND = ["sh", "-c", "echo value 0.5"]
STUDY = """
study: bench
command: [sh, -c, "echo value {x}"]
parameters: {x: {low: 0.0, high: 1.0}, y: {low: 1e-5, high: 1.0, log: true}, z: {choice: [a, b]}}
target: {name: value, pattern: 'value ([0-9.e-]+)'}
"""
MANY = 10_000


def overhead(trials: int) -> tuple[float, Rows]:
    """Milliseconds of a trial on the journal beyond those of its command."""

    def bare() -> float:
        began = time.perf_counter()
        for _ in range(trials):
            subprocess.run(COMMAND, capture_output=True, check=True)
        return (time.perf_counter() - began) / trials

    first, second = bare(), bare()
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(parse_study(STUDY, "bench.yaml"), base=folder, trials=trials)
        began = time.perf_counter()
        worker.run()
        each = (time.perf_counter() - began) / trials
    rows = [{"case": "overhead of a trial, journal", "value": 1000 * (each - min(first, second)), "unit": "ms"}]
    return second / first, rows


def listing() -> Rows:
    """Seconds to read ten thousand trials for the first time."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "web" / "e2e"))
    from studies import many

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "studies").mkdir()
        many(Path(folder), MANY)
        began = time.perf_counter()
        table = StudyReader(Place(str(Path(folder) / "studies" / "many.journal"), "many")).read()
        seconds = time.perf_counter() - began
    assert len(table.trials) == MANY
    return [{"case": "10,000 trials read the first time", "value": seconds, "unit": "s"}]


def search(seeds: int) -> Rows:
    """Wins over the median of random search, and the steps that pruning saves, by problem."""
    rows: Rows = []
    for problem in problems():
        chance = statistics.median(replay(problem, tuner="random", seed=1000 + seed).best for seed in range(seeds))
        better = {
            tuner: sum(replay(problem, tuner=tuner, seed=seed).best < chance for seed in range(seeds))
            for tuner in ("tpe", "gp")
        }
        # The same proposals with and without pruning, so that nothing else differs.
        plain = [replay(problem, tuner="random", seed=seed) for seed in range(seeds)]
        pruned = [replay(problem, tuner="random", pruner="median", seed=seed) for seed in range(seeds)]
        saved = 1 - sum(one.steps for one in pruned) / sum(one.steps for one in plain)
        kept = sum(one.best == other.best for one, other in zip(pruned, plain))
        name = problem.name
        rows += [
            *({"case": f"{name}: {tuner} beats random's median", "value": wins, "unit": "seeds"}
              for tuner, wins in better.items()),
            {"case": f"{name}: steps saved by pruning", "value": saved, "unit": "share"},
            {"case": f"{name}: best kept by pruning", "value": kept, "unit": "seeds"},
        ]  # fmt: skip
    return rows


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    control, rows = overhead(given.trials)
    return control, [*rows, *listing(), *search(given.seeds)]


if __name__ == "__main__":
    parser = options(__doc__ or "")
    parser.add_argument("--trials", type=int, default=40, help="trials for the overhead")
    parser.add_argument("--seeds", type=int, default=30, help="seeds of a recorded training")
    bench(parser, measure)
