"""The run directory: every path in one place.

    missteps/2026-11-15T18-04-05-fox/
    ├── run.json                        what was run, where, with which versions
    ├── labels.json                     what people say of it (labels.py)
    └── rank-0/
        ├── journal.jsonl               what happened, in order
        ├── graph.jsonl                 nodes, tensors, shapes and edges, by their index
        ├── stats.bin                   one row of 128 bytes per tensor and step
        ├── tensors.pack, tensors.idx   whole tensors, and where each of them lies
        ├── trace.bin                   where the time of every step went
        ├── facts.jsonl                 how the program trains: what `misstep diagnose` reads
        └── recorder.ring, recorder.batch, modules.jsonl, reports.jsonl, stacks/    the flight recorder's (see ring.py)

A rank directory has one writer for ever: making the directory is the claim, and whoever comes second (a restarted
worker, the second training of one shell script) takes the next free number from the world size on.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

RUN_FILE = "run.json"
RUN_VARIABLE = "MISSTEP_RUN"
"""Environment variable with the absolute path of the run that every process of one launch writes to."""

_RANK = re.compile(r"rank-(\d+)")


@dataclass(frozen=True, slots=True)
class RankPaths:
    """The files of one rank."""

    directory: Path

    @property
    def journal(self) -> Path:
        return self.directory / "journal.jsonl"

    @property
    def graph(self) -> Path:
        return self.directory / "graph.jsonl"

    @property
    def stats(self) -> Path:
        return self.directory / "stats.bin"

    @property
    def pack(self) -> Path:
        return self.directory / "tensors.pack"

    @property
    def index(self) -> Path:
        return self.directory / "tensors.idx"

    @property
    def trace(self) -> Path:
        return self.directory / "trace.bin"

    @property
    def facts(self) -> Path:
        return self.directory / "facts.jsonl"

    @property
    def ring(self) -> Path:
        return self.directory / "recorder.ring"

    @property
    def batch(self) -> Path:
        return self.directory / "recorder.batch"

    @property
    def modules(self) -> Path:
        """Names of modules by their number in the ring's cells."""
        return self.directory / "modules.jsonl"

    @property
    def reports(self) -> Path:
        """What the process itself could say of its end, or of a hang."""
        return self.directory / "reports.jsonl"

    @property
    def stacks(self) -> Path:
        """Where Python's fault handler writes: fatal.txt, terminated.txt, asked.txt, hang.txt."""
        return self.directory / "stacks"


def rank_paths(run: Path, rank: int) -> RankPaths:
    return RankPaths(run / f"rank-{rank}")


def ranks_in(run: Path) -> list[int]:
    """The ranks that wrote into a run, in order."""
    try:
        names = os.listdir(run)
    except OSError:
        return []
    return sorted(int(found[1]) for name in names if (found := _RANK.fullmatch(name)))


def is_run(directory: Path) -> bool:
    """True for a run directory, even one whose run.json was lost."""
    return directory.is_dir() and ((directory / RUN_FILE).is_file() or bool(ranks_in(directory)))


def claim_rank(run: Path, rank: int, *, world_size: int) -> int:
    """Make a rank directory of our own and tell its number: the wanted one, or the next free from the world size on.

    mkdir is atomic on every file system that matters, NFS too, and leaves no lock behind when a process is killed.
    """
    wanted = rank
    following = max(world_size, rank + 1, 1)
    while True:
        try:
            os.mkdir(rank_paths(run, wanted).directory)
            return wanted
        except FileExistsError:
            if not rank_paths(run, wanted).directory.is_dir():
                raise
            wanted, following = following, following + 1
