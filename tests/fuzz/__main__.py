"""`make fuzz`: many damaged inputs to every reader and grammar, in two processes, and what came of them.

    python -m tests.fuzz                       200,000 cases a target, at most twenty minutes
    python -m tests.fuzz --cases 2000          a quick look
    python -m tests.fuzz --minutes 480         a night

A traceback or a case above two seconds is kept in tests/fuzz/found/<target>/ and from then on is a test.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from dataclasses import asdict

from tests.fuzz.targets import TARGETS
from tests.fuzz.work import SLOW, Told, work


def main() -> int:
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("--cases", type=int, default=200_000, help="of each target")
    read.add_argument("--minutes", type=float, default=20.0, help="for all of them together")
    read.add_argument("--first", type=int, default=0, help="the number of the first case: another part of the same sea")
    read.add_argument("--only", default="", help="names of targets, separated by commas")
    read.add_argument("--json", action="store_true")
    given = read.parse_args()
    names = [name for name in TARGETS if not given.only or name in given.only.split(",")]
    began = time.time()
    until = began + 60 * given.minutes
    workers = min(2, os.cpu_count() or 1, len(names))
    # A fresh process a target, so that its peak is its own.
    context = multiprocessing.get_context("spawn")
    told: list[Told] = []
    with context.Pool(workers, maxtasksperchild=1) as pool:
        # Twice an even share: grammars are done long before theirs is over.
        share = 2 * 60 * given.minutes * workers / len(names)
        jobs = [(name, given.first, given.cases, share, until) for name in names]
        for one_told in pool.imap(work, jobs, chunksize=1):
            told.append(one_told)
            if not given.json:
                print(_line(one_told), flush=True)
    if given.json:
        print(json.dumps({"seconds": time.time() - began, "targets": [asdict(one_told) for one_told in told]}))
    else:
        total = sum(one_told.cases for one_told in told)
        print(f"{total:,} cases in {time.time() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    return int(any(one_told.tracebacks or one_told.hangs or one_told.peak_mb >= 300 for one_told in told))


def _line(told: Told) -> str:
    rate = told.cases / told.seconds if told.seconds else 0
    return (
        f"{told.name:<24}{told.cases:>9,} cases {rate:>8,.0f}/s {told.errors:>9,} explained "
        f"{told.tracebacks:>4} tracebacks {told.hangs:>3} over {SLOW:.0f} s "
        f"{told.slowest * 1000:>7,.0f} ms at most {told.peak_mb:>4} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
