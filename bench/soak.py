"""A long training under misstep: whether memory, open files and the run directory stay flat.

    python bench/soak.py --steps 200000     some minutes
    python bench/soak.py --json

A real torch training of a tiny network at level guard. Growth is what the second half of the steps added to the first:
the warm-up is in the first. The control is the same training without misstep, its growth of memory in MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Rows, bench, options

TRAIN = """
import json, os, sys, torch
steps = int(sys.argv[1])
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 8)

def look():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    run = os.environ.get("MISSTEP_RUN", "")
    disk = sum(os.stat(os.path.join(at, name)).st_size for at, _, names in os.walk(run) for name in names) if run else 0
    rss, files = int(status["VmRSS"].split()[0]) / 1024, len(os.listdir("/proc/self/fd"))
    return {"rss": rss, "files": files, "disk": disk / 2**20}

seen = []
for step in range(1, steps + 1):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    if step in (steps // 2, steps):
        seen.append(look())
print(json.dumps(seen), file=open(sys.argv[2], "w"))
"""


def looked(steps: int, *, watched: bool) -> list[dict[str, float]]:
    """How it stood after half of the steps, and after all."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", TRAIN, str(steps), f"{folder}/seen.json"]
        if watched:
            command = [sys.executable, "-m", "misstep", "run", "-q", "--no-ui", "--dir", f"{folder}/runs", *command]
        subprocess.run(command, check=True, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        found: list[dict[str, float]] = json.loads(Path(folder, "seen.json").read_text())
        return found


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    plain = looked(given.steps, watched=False)
    half, whole = looked(given.steps, watched=True)
    per = given.steps / 2 / 1000
    rows: Rows = [
        {"case": "memory growth in the second half", "value": whole["rss"] - half["rss"], "unit": "MB"},
        {"case": "open files, growth", "value": whole["files"] - half["files"], "unit": "files"},
        {"case": "disk a thousand steps", "value": (whole["disk"] - half["disk"]) * 1024 / per, "unit": "KB"},
        {"case": "disk in all", "value": whole["disk"], "unit": "MB"},
    ]
    return plain[1]["rss"] - plain[0]["rss"], rows


if __name__ == "__main__":
    parser = options(__doc__ or "")
    parser.add_argument("--steps", type=int, default=200_000)
    bench(parser, measure)
