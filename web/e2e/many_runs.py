"""A folder with thousands of runs for the benchmark and the tests of the list, written as real runs are.

python e2e/many_runs.py FOLDER [COUNT]
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import numpy as np

from misstep.core.finding import Verdict
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.store.labels import Labels, write_labels
from misstep.store.writing.writer import RunWriter

MODELS = ("gpt", "vit", "resnet", "lstm")
TAGS = ("baseline", "ablation", "bug", "sota")


def main(folder: Path, count: int) -> None:
    """One written in full for each kind; the others are copies of its files with a command of their own."""
    chance = random.Random(7)
    kinds = [_written(folder / f".kind-{at}", at) for at in range(8)]
    for at in range(count):
        kind = chance.randrange(len(kinds))
        run = folder / f"{MODELS[kind % 4]}-{at:04d}"
        shutil.copytree(kinds[kind], run, dirs_exist_ok=True)
        lr, batch, layers = 10 ** chance.uniform(-5, -2), chance.choice((16, 32, 64, 96)), chance.randrange(2, 13)
        command = ["python", "train.py", "--model", MODELS[kind % 4], "--lr", f"{lr:.2g}"]
        command += ["--batch", str(batch), "--layers", str(layers), *(["--amp"] if chance.random() < 0.3 else [])]
        text = (run / "run.json").read_text(encoding="utf-8")
        words = ",".join(f'"{word}"' for word in command)
        text = text.replace('"COMMAND"', words).replace("1700000000.0", f"{1700000000.0 + 60 * at}")
        (run / "run.json").write_text(text, encoding="utf-8")
        if at % 10 == 0:
            write_labels(run, Labels((chance.choice(TAGS),), pinned=at % 500 == 0))
    for kind in kinds:
        shutil.rmtree(kind)


def _written(path: Path, at: int) -> Path:
    writer = RunWriter(path, 0, RunInfo(name=path.name, command=("COMMAND",), started=1700000000.0, host="here"))
    falls, bad = 0.02 + 0.01 * at, at % 3 == 0
    steps = 40 + 3 * at
    for step in range(1, steps + 1):
        loss = 3 * np.exp(-falls * step) + 0.02 * np.sin(step * 1.7 + at)
        broken = bad and step > steps - 6
        writer.step(Step(step, loss=float("nan") if broken else float(loss)), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    if bad:
        writer.verdict(Verdict(step=steps - 5, rank=0, phase="forward", kind="nan", node="blocks.3/log"))
    writer.end("failed" if at == 5 else "finished", 1 if at == 5 else 0)
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5000)
