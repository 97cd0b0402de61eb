"""How well the memory of a training is predicted before it runs: `misstep memory` against torch's own allocator.

    python bench/memory.py                 four networks with SGD and Adam
    python bench/memory.py --all           also checkpointing and bfloat16 autocast
    python bench/memory.py --json          one JSON object

The truth is the allocator's: the most that was allocated at once, from the events of torch's profiler over the same two
steps of the same script. The control is the prediction of one script made twice.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import Rows, bench, options

ROOT = Path(__file__).resolve().parents[1]
NETWORKS = {
    "mlp": (
        "nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))",
        256,
    ),
    "wide": ("nn.Sequential(nn.Linear(64, 4096), nn.GELU(), nn.Linear(4096, 10))", 64),
    "deep": (
        "nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(128, 128), nn.Tanh())], nn.Linear(128, 10))",
        128,
    ),
    "norm": (
        "nn.Sequential(nn.Linear(256, 512), nn.LayerNorm(512), nn.SiLU(), nn.Dropout(0.1), nn.Linear(512, 10))",
        256,
    ),
}
SCRIPT = """
import json, sys
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(512, {width}), torch.randint(0, 10, (512,)))

def main(steps):
    net = {network}
    optimizer = torch.optim.{optimizer}(net.parameters(), lr=1e-3)
    for number, (x, y) in enumerate(DataLoader(data, batch_size=128)):
        if number == steps:
            break
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled={amp}):
            out = checkpoint(net, x, use_reentrant=False) if {checkpointed} else net(x)
        loss = nn.functional.cross_entropy(out.float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

if sys.argv[1:] == ["actual"]:
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        main(2)
    profiled.export_chrome_trace("actual.json")
    events = json.load(open("actual.json"))["traceEvents"]
    held = top = 0
    for event in sorted((one for one in events if one.get("name") == "[memory]"), key=lambda one: one["ts"]):
        held += event["args"]["Bytes"]
        top = max(top, held)
    print("peak", top)
else:
    main(10)
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "ONEDNN_MAX_CPU_ISA": "AVX2",  # bfloat16 dies of AMX instructions on machines that only claim to have them
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def predicted(folder: Path) -> int:
    done = run(folder, "-m", "misstep", "memory", "--json", sys.executable, "train.py")
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return int(json.loads(done.stdout)["footprint"]["peak"])


def actual(folder: Path) -> int:
    done = run(folder, "train.py", "actual")
    if done.returncode:
        raise SystemExit(done.stderr)
    return int(done.stdout.split()[-1])


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    choices: list[dict[str, Any]] = [{"optimizer": "SGD"}, {"optimizer": "Adam"}]
    if given.all:
        choices += [{"optimizer": "Adam", "checkpointed": True}, {"optimizer": "SGD", "amp": True}]
    errors, rows, control = [], [], 1.0
    for name, (network, width) in list(NETWORKS.items())[: given.networks]:
        for choice in choices:
            facts = {"network": network, "width": width, "amp": False, "checkpointed": False} | choice
            with tempfile.TemporaryDirectory() as made:
                folder = Path(made)
                (folder / "train.py").write_text(SCRIPT.format(**facts), encoding="utf-8")
                before, after = predicted(folder), actual(folder)
                if not errors:
                    control = predicted(folder) / before
            errors.append(abs(before - after) / after)
            case = " ".join([name, *(f"{key}={value}" for key, value in choice.items())])
            rows.append({"case": case, "value": round(100 * (before / after - 1), 2), "unit": "% off"})
    rows += [
        {"case": "median error", "value": round(100 * statistics.median(errors), 2), "unit": "%"},
        {"case": "largest error", "value": round(100 * max(errors), 2), "unit": "%"},
    ]
    return control, rows


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--all", action="store_true", help="checkpointing and autocast too")
    parser.add_argument("--networks", type=int, default=len(NETWORKS), help="how many of the networks")
    bench(parser, measure)


if __name__ == "__main__":
    main()
