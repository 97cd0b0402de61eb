"""Every name of PyTorch verified, in processes that may crash: `python -m misstep.migration.apimap.generate`.

    names → workers (each takes a batch; a crash costs the pair it was at, and is an answer) → journal → api_map.jsonl

The journal is appended name by name, so that an interrupted run goes on where it stopped; names the table already
holds for the installed versions are left alone, unless all is asked for (`--fresh`).
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from misstep.migration.apimap.assemble import names_held, write_table
from misstep.migration.apimap.classes.recipes import kind_of

BATCH, CLASSES = 120, 6
"""Names a worker takes; few classes, because MindSpore keeps state between trainings of one process, and after some its
gradients of recurrent and normalising layers may fail."""
PATIENCE = 60.0
"""Seconds a pair may take before its worker is ended."""
CRASHES = 6
"""Pairs of one name that may bring a worker down before the name is given up."""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--journal", type=Path, default=Path("build/api-map.jsonl"), help="where results are collected")
    asked.add_argument("--workers", type=int, default=1)
    asked.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these names again, whatever is known")
    asked.add_argument("--fresh", action="store_true", help="forget what was verified before")
    asked.add_argument("--write", action="store_true", help="write the table into the package at the end")
    given = asked.parse_args()
    given.journal.parent.mkdir(parents=True, exist_ok=True)
    if given.fresh:
        given.journal.unlink(missing_ok=True)
    known = {*read_journal(given.journal), *(() if given.fresh else names_held())}
    names = given.only or [name for name in _all_names() if name not in known]
    journal = Journal(given.journal)
    batches = [*_batches(names, classes=False), *_batches(names, classes=True)]
    with ThreadPoolExecutor(given.workers) as pool:
        for _ in pool.map(lambda batch: _verify(batch, journal), batches):
            print(f"{journal.written}/{len(names)}", file=sys.stderr)
    if given.write:
        print(write_table(read_journal(given.journal).values(), keep=not given.fresh))


def _batches(names: list[str], *, classes: bool) -> list[list[str]]:
    size = CLASSES if classes else BATCH
    chosen = [name for name in names if (kind_of(name) != "function") is classes]
    return [chosen[at : at + size] for at in range(0, len(chosen), size)]


class Journal:
    """Results as they come in."""

    def __init__(self, path: Path) -> None:
        self.path, self.written, self._lock = path, 0, Lock()

    def add(self, entry: dict[str, Any]) -> None:
        with self._lock, self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(entry, ensure_ascii=False) + "\n")
            self.written += 1


def read_journal(path: Path) -> dict[str, dict[str, Any]]:
    """By name; of a name verified twice the later result. A torn last line is ignored."""
    found: dict[str, dict[str, Any]] = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            found[entry["name"]] = entry
    return found


def _all_names() -> list[str]:
    """Asked of a process of its own: the parent holds no framework."""
    command = (
        "from misstep.migration.apimap.functions import torch_surface; "
        "from misstep.migration.apimap.classes import torch_make; "
        "print(*torch_surface.names(), *torch_make.names(), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True, env=_quiet())
    return [line for line in done.stdout.splitlines() if line.startswith("torch.")]


def _verify(names: Iterable[str], journal: Journal) -> None:
    left = list(names)
    skip: dict[str, list[str]] = {}
    while left:
        at = ("", "")
        for line in _worker({"names": left, "skip": skip}):
            if "begin" in line:
                at = (line["begin"], line["target"])
            else:
                line["crashed"] = skip.get(line["name"], [])
                journal.add(line)
                left.remove(line["name"])
                at = ("", "")
        if not left:
            return
        name = at[0] or left[0]
        skip.setdefault(name, []).append(at[1])
        if len(skip[name]) >= CRASHES or not at[0]:
            journal.add(
                {"name": name, "kind": "function", "samples": 0, "signatures": [], "ways": [], "crashed": skip[name]}
            )
            left.remove(name)


def _worker(work: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of one worker, until it ends, dies or says nothing for too long."""
    process = subprocess.Popen(
        [sys.executable, "-m", "misstep.migration.apimap.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_quiet(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(work).encode())
    process.stdin.close()
    waiting = selectors.DefaultSelector()
    waiting.register(process.stdout, selectors.EVENT_READ)
    rest = b""
    began = time.monotonic()
    try:
        while True:
            if not waiting.select(timeout=max(0.0, PATIENCE - (time.monotonic() - began))):
                return
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                began = time.monotonic()
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # something a framework printed
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _quiet() -> dict[str, str]:
    return {**os.environ, "GLOG_v": "4", "OMP_NUM_THREADS": "1", "MS_DEV_LOG": "4", "TORCH_SHOW_CPP_STACKTRACES": "0"}


if __name__ == "__main__":
    main()
