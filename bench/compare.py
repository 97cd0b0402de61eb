"""How long it takes to lay two operator-level dumps side by side.

    python bench/compare.py                  about 2,500 pairs, 2.8 GB
    python bench/compare.py --quick          a tenth of it
    python bench/compare.py --json           one object: {"control": …, "rows": [{"case", "value", "unit"}]}

A small GPT runs one step twice, forward and backward; every operator's inputs and outputs are written as .npy, once as
it is and once with one LayerNorm weight scaled by 1 %. Beside it what people write by hand: load both files, four
measures with numpy. Both read from the page cache; each case runs in a process of its own, with its own peak memory.
`control` is our comparison against itself in the same arrangement: what noise alone gives.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Rows, bench, options

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("--quick", action="store_true", help="a tenth of the data")
    arguments.add_argument("--repeats", type=int, default=3, help="the best of this many runs counts")
    arguments.add_argument("--case", choices=("make", "ours", "numpy"), help=argparse.SUPPRESS)
    arguments.add_argument("--data", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.case:
        work = {"make": make, "ours": ours, "numpy": by_hand}[given.case]
        print(json.dumps(work(Path(given.data), given)))
    else:
        bench(arguments, side_by_side)


def side_by_side(given: argparse.Namespace) -> tuple[float, Rows]:
    data = Path(tempfile.mkdtemp(prefix="misstep-bench-compare-"))
    try:
        made = run("make", data, given)
        # Interleaved, so that a busy minute of the machine falls on both.
        results: dict[str, list[dict[str, float]]] = {"numpy": [], "ours": [], "again": []}
        for _ in range(given.repeats):
            for case in results:
                results[case].append(run("ours" if case == "again" else case, data, given))
    finally:
        shutil.rmtree(data, ignore_errors=True)
    best = {case: min(found, key=lambda one: one["seconds"]) for case, found in results.items()}
    control = best["again"]["seconds"] / best["ours"]["seconds"]
    rows: Rows = [
        {"case": "pairs", "value": made["pairs"], "unit": "pairs"},
        {"case": "data", "value": round(made["gigabytes"], 3), "unit": "GB"},
        {"case": "compare", "value": round(best["ours"]["seconds"], 3), "unit": "s"},
        {"case": "compare, processor time", "value": round(best["ours"]["processor_seconds"], 3), "unit": "s"},
        {"case": "compare, peak memory", "value": round(best["ours"]["peak_mb"]), "unit": "MB"},
        {"case": "compare, throughput", "value": round(made["gigabytes"] / best["ours"]["seconds"], 2), "unit": "GB/s"},
        {"case": "plain numpy loop", "value": round(best["numpy"]["seconds"], 3), "unit": "s"},
        {
            "case": "plain numpy loop, processor time",
            "value": round(best["numpy"]["processor_seconds"], 3),
            "unit": "s",
        },
        {"case": "plain numpy loop, peak memory", "value": round(best["numpy"]["peak_mb"]), "unit": "MB"},
        {"case": "times faster", "value": round(best["numpy"]["seconds"] / best["ours"]["seconds"], 2), "unit": "x"},
        {"case": "first cause is the scaled weight", "value": best["ours"]["found"], "unit": "bool"},
    ]
    return control, rows


def run(case: str, data: Path, given: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--case", case, "--data", str(data)] + (["--quick"] if given.quick else [])
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def make(data: Path, given: argparse.Namespace) -> dict[str, float]:
    """Both dumps, written by an operator-level hook."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from misstep.store.foreign.export import write_npy_tree
    from misstep.store.foreign.source import ArraySource

    sys.path.insert(0, str(ROOT / "tests" / "compare"))
    from nets import Gpt

    size, batch, length = (64, 2, 64) if given.quick else (240, 4, 120)
    depth = 9

    class Dump(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.arrays: dict[str, object] = {}
            self.types: dict[str, str] = {}
            self.count: dict[str, int] = {}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            name = str(func).replace("aten.", "").rsplit(".", 1)[0]
            call = self.count[name] = self.count.get(name, 0) + 1
            node = f"step/{name}~{call}"
            for slot, given_tensor in enumerate(tensors(args)):
                self.arrays[f"{node}:input.{slot}"] = given_tensor.detach().clone().numpy()
            result = func(*args, **(kwargs or {}))
            for slot, made in enumerate(tensors(result)):
                self.arrays[f"{node}:output.{slot}"] = made.detach().clone().numpy()
            self.types[f"step/{name}"] = name
            return result

    def tensors(thing: object) -> list[torch.Tensor]:
        if isinstance(thing, torch.Tensor):
            return [thing] if thing.numel() else []
        if isinstance(thing, list | tuple):
            return [one for inner in thing for one in tensors(inner)]
        return []

    pairs, total = 0, 0
    for side in ("left", "right"):
        torch.manual_seed(0)
        model = Gpt(words=512, size=size, heads=8, depth=depth, length=length)
        if side == "right":
            with torch.no_grad():
                model.blocks[3].ln1.weight.mul_(1.01)
        ids = torch.randint(0, 512, (batch, length), generator=torch.Generator().manual_seed(1))
        dump = Dump()
        for name, parameter in model.named_parameters():
            dump.arrays[f"{name}:param"] = parameter.detach().clone().numpy()
        with dump:
            logits = model(ids)
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
        write_npy_tree(ArraySource(dump.arrays, types=dump.types), data / side)
        pairs = len(dump.arrays)
        total += sum(file.stat().st_size for file in (data / side).glob("*.npy"))
    return {"pairs": pairs, "gigabytes": total / 1e9}


def ours(data: Path, given: argparse.Namespace) -> dict[str, float]:
    from misstep.compare.layers import diff

    begun, worked = time.perf_counter(), time.process_time()
    found = diff(data / "left", data / "right")
    seconds, worked = time.perf_counter() - begun, time.process_time() - worked
    cause = found.cause.name if found.cause is not None else ""
    return {
        "seconds": seconds,
        "processor_seconds": worked,
        "peak_mb": peak_mb(),
        "found": float(cause == "blocks.3.ln1.weight:param"),
    }


def by_hand(data: Path, given: argparse.Namespace) -> dict[str, float]:
    import numpy as np

    begun, worked = time.perf_counter(), time.process_time()
    for file in sorted((data / "left").glob("*.npy")):
        a, b = np.load(file), np.load(data / "right" / file.name)
        if a.dtype.kind == "f":
            gap = np.abs(a - b)
            _ = (gap.max(), gap.mean(), (gap / (np.abs(b) + 1e-12)).max())
            _ = np.vdot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-30)
        else:
            _ = (a == b).all()
    seconds, worked = time.perf_counter() - begun, time.process_time() - worked
    return {"seconds": seconds, "processor_seconds": worked, "peak_mb": peak_mb()}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
