"""Workers of one study, killed at random with kill -9 and replaced, until the study is done.

    python tests/tuning/killing.py --kills 50 --trials 200                     a journal
    python tests/tuning/killing.py --kills 50 --trials 200 --on postgresql     a PostgreSQL of our own, or mariadb

`make tune-kills` runs all three. The small, seeded part is in test_kills.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from database import Postgres
from mariadb import MariaDB

import misstep
from misstep.tuning.storage.places import find
from misstep.tuning.storage.shared import MOST_STALE, SURPLUS
from misstep.tuning.storage.table import StudyReader, Table

STUDY = """
study: kills
command: [sh, -c, "sleep 0.3; echo value {x}"]
parameters:
  x: {low: 0.0, high: 1.0}
target: {name: value, pattern: 'value ([0-9.e-]+)'}
tuner: random
heartbeat: 1s
grace: 20s
"""

PATIENCE = 600
"""Seconds for what takes a few, on a machine that does much else."""


class Crowd:
    """So many workers, always."""

    def __init__(self, folder: Path, storage: str, trials: int, workers: int) -> None:
        (folder / "kills.yaml").write_text(STUDY + f"trials: {trials}\n")
        self._folder, self._storage = folder, storage
        self._runs, self._seen = folder / "missteps", 0
        self._running = [self._start() for _ in range(workers)]
        self.killed = 0

    def kill(self, which: int) -> None:
        worker = self._running[which]
        worker.send_signal(signal.SIGKILL)  # nothing happens to one that ended by itself
        worker.wait()
        self.killed += 1
        self._running[which] = self._start()

    def await_trials(self, count: int) -> None:
        """Wait until so many more trials have begun, or the study is done."""
        end = time.monotonic() + PATIENCE
        while len(list(self._runs.glob("kills-*"))) < self._seen + count and not self._is_done():
            assert time.monotonic() < end, (self._folder / "workers.txt").read_text()[-3000:]
            time.sleep(0.05)
        self._seen = len(list(self._runs.glob("kills-*")))

    def _is_done(self) -> bool:
        return all(worker.poll() is not None for worker in self._running)

    def wait(self, seconds: float) -> list[int]:
        return [worker.wait(seconds) for worker in self._running]

    def table(self) -> Table:
        return StudyReader(find("kills", self._folder / "missteps")).read()

    def _start(self) -> subprocess.Popen[bytes]:
        storage = ["--storage", self._storage] if self._storage else []
        environment = {**os.environ, "PYTHONPATH": str(Path(misstep.__file__).parents[1])}
        with open(self._folder / "workers.txt", "ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "misstep", "tune", "kills.yaml", *storage],
                cwd=self._folder,
                env=environment,
                stdout=file,
                stderr=file,
            )


def kill_at_random(
    folder: Path,
    *,
    storage: str = "",
    kills: int,
    trials: int,
    workers: int = 4,
    seed: int = 0,
    meanwhile: Callable[[int], None] = lambda killed: None,
) -> Table:
    """Run a study of quick trials while its workers are killed; the study afterwards."""
    chance = random.Random(seed)
    crowd = Crowd(folder, storage, trials, workers)
    for _ in range(kills):
        crowd.await_trials(1 + chance.randrange(2))  # so that kills fall among trials, however slow the machine is
        time.sleep(chance.uniform(0.0, 0.5))  # the moment of a kill is the subject here, not something to wait for
        crowd.kill(chance.randrange(workers))
        meanwhile(crowd.killed)
    codes = crowd.wait(PATIENCE)
    assert codes == [0] * workers, (folder / "workers.txt").read_text()[-3000:]
    return crowd.table()


def check(table: Table, trials: int) -> dict[str, int]:
    """Every trial is accounted for, none doubled, stale ones run again; how many of each there are.

    Values whose worker was killed each time, first and again, are given up by design: they count as accounted for.
    """
    states = Counter(trial.shown_state for trial in table.trials)
    assert set(states) <= {"complete", "stale", SURPLUS}, states
    assert [trial.number for trial in table.trials] == list(range(len(table.trials)))
    retried = [trial.attributes["retry_of"] for trial in table.trials if "retry_of" in trial.attributes]
    assert len(retried) == len(set(retried)), "a trial was queued twice"
    stale = [trial for trial in table.trials if trial.shown_state == "stale"]
    given_up = {trial.number for trial in stale if trial.attributes.get("attempt", 1) > MOST_STALE}
    # One killed before it had values leaves nothing to run again, unless it was to run another's.
    lost = {trial.number for trial in stale if trial.params or "retry_of" in trial.attributes} - given_up
    assert set(retried) == lost, "a stale trial was not run again"
    complete = [trial for trial in table.trials if trial.state == "complete"]
    assert len(complete) + len(given_up) == trials, f"{len(complete)} complete of {trials}"
    assert all(abs((trial.values or [9])[0] - trial.params["x"]) < 1e-12 for trial in complete)
    assert len({trial.params["x"] for trial in complete}) == len(complete), "the same values were run twice"
    return {"given up": len(given_up), **states}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--on", choices=["journal", "postgresql", "mariadb"], default="journal")
    options = parser.parse_args()
    server = {"journal": lambda: None, "postgresql": Postgres, "mariadb": MariaDB}[options.on]()
    storage = "" if server is None else server.url

    def restart(killed: int) -> None:
        if server is not None and killed == options.kills // 2:
            server.restart()

    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            table = kill_at_random(
                Path(folder),
                storage=storage,
                kills=options.kills,
                trials=options.trials,
                workers=options.workers,
                seed=options.seed,
                meanwhile=restart,
            )
            told = {"kills": options.kills, **check(table, options.trials), "seconds": round(time.monotonic() - begin)}
            print(json.dumps(told))
    finally:
        if server is not None:
            server.close()


if __name__ == "__main__":
    main()
