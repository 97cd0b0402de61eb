"""How far `misstep advise` can be trusted: small generated trainings, each recorded, advised, and its advice applied.

    python bench/advice.py                 eight trainings, seeded
    python bench/advice.py --count 80      the whole set, MindSpore's pipelines included
    python bench/advice.py --json          one JSON object

Each training has one cause built in: samples that sleep (input), that compute, batches that are cheap and large
(transfer), or none (healthy). What should be said is known, and what a change brings is measured by `--apply` itself.
The control is a healthy training's two runs without any change against each other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import Rows, bench, options

ROOT = Path(__file__).resolve().parents[1]

TORCH = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

class Made(Dataset):
    def __len__(self):
        return {steps} * {batch}
    def __getitem__(self, index):
        time.sleep({sleep})
        x = torch.ones({width})
        for _ in range({work}):
            x = x.sin()
        return x, torch.ones(1)

net = torch.nn.Sequential(torch.nn.Linear({width}, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
for x, y in DataLoader(Made(), batch_size={batch}, num_workers={workers}):
    loss = (net(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    time.sleep({rest})
    optimizer.step()
"""
MINDSPORE = """
import time
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn

class Made:
    def __len__(self):
        return {steps} * {batch}
    def __getitem__(self, index):
        time.sleep({sleep})
        return np.ones({width}, np.float32), np.ones(1, np.float32)

net = nn.SequentialCell(nn.Dense({width}, 32), nn.Tanh(), nn.Dense(32, 1))
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.001)
data = ds.GeneratorDataset(Made(), ["x", "y"]).batch({batch})
ms.Model(net, nn.MSELoss(), optimizer).train(1, data, dataset_sink_mode=False)
"""


def workload(number: int) -> tuple[str, str]:
    """A script, and the verdict it deserves."""
    draw = random.Random(number)
    kind = ("input", "input", "healthy", "healthy-workers", "input-workers", "healthy", "input", "mindspore")[
        number % 8
    ]
    facts: dict[str, Any] = {
        "steps": 70,
        "batch": draw.choice([4, 8]),
        "width": draw.choice([16, 64]),
        "work": 0,
        "sleep": 0.0,
        "rest": draw.choice([0.004, 0.008]),
        "workers": 0,
    }
    if kind.startswith("input") or kind == "mindspore":
        facts["sleep"] = draw.choice([0.002, 0.003, 0.004])
    if kind == "input-workers":
        facts["workers"] = 1
    elif kind == "healthy-workers":
        facts |= {"workers": 1, "rest": 0.02, "sleep": 0.0005}
    elif kind == "healthy":
        facts["rest"] = 0.02
    script = (MINDSPORE if kind == "mindspore" else TORCH).format(**facts)
    return script, "fine" if kind.startswith("healthy") else "input"


def misstep(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "misstep", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def told(script: str, *, healthy: bool) -> dict[str, Any]:
    """What is advised of a training, and what came of it; one without advice is measured against itself."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "train.py").write_text(script, encoding="utf-8")
        recorded = misstep(folder, "run", "-q", "--level", "off", sys.executable, "train.py")
        more = ["--try", "MISSTEP_BENCH=1"] if healthy else []
        done = misstep(folder, "advise", "last", "--apply", "--json", "--steps", "50", "--pairs", "2", *more)
        if done.returncode:
            raise SystemExit(f"{recorded.stderr}\n{done.stderr}")
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    right, errors, slower, unasked, inside, controls = 0, [], 0, 0, 0, [1.0]
    for number in range(given.count):
        script, deserved = workload(given.seed + number)
        facts = told(script, healthy=deserved == "fine")
        tried = [one for one in facts["trials"] if one["before"] and one["after"]]
        right += (facts["verdict"]["bound"] == "fine") == (deserved == "fine")
        unasked += deserved == "fine" and any(one["predicted"] is not None for one in facts["advice"])
        slower += sum(one["kept"] and one["after"] > 1.01 * one["before"] for one in tried)
        controls += [one["after"] / one["before"] for one in tried if one["name"].startswith("MISSTEP_BENCH")]
        for one in tried:
            # Predicted from the run without the change that was measured just before: both saw the same machine.
            if one["expected"] and one["name"].startswith("num_workers"):
                errors.append(abs(one["expected"] - one["after"]) / one["after"])
                inside += errors[-1] <= 0.10
        print(number, deserved, facts["verdict"]["bound"], tried, file=sys.stderr)
    rows: Rows = [
        {"case": "trainings", "value": given.count, "unit": ""},
        {"case": "verdicts right", "value": round(100 * right / given.count, 1), "unit": "%"},
        {"case": "median error", "value": round(100 * statistics.median(errors), 1) if errors else -1, "unit": "%"},
        {"case": "within 10 %", "value": round(100 * inside / max(1, len(errors)), 1), "unit": "%"},
        {"case": "slower after apply", "value": slower, "unit": "kept changes"},
        {"case": "advice on healthy", "value": unasked, "unit": "trainings"},
    ]
    return max(controls, key=lambda ratio: max(ratio, 1 / ratio)), rows


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--count", type=int, default=8, help="trainings; 80 for the whole set")
    parser.add_argument("--seed", type=int, default=0)
    bench(parser, measure)


if __name__ == "__main__":
    main()
