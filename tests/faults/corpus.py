"""The corpus: programs with their true cause, each run in this process under a session of its own, then diagnosed.

A cell of a `.cells` file is a program: `# %% name | cause | half`, below it the source. It finds `blobs` (a small
classification set) and the usual imports.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from misstep.capture.session import Session
from misstep.diagnosis.diagnose import Diagnosis, diagnose
from misstep.settings import Settings

HERE = Path(__file__).parent
_HEAD = re.compile(r"^# %% *(\S+) *\| *(\S+) *\| *(\S+) *$", re.M)
_TORCH = """import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
def blobs(classes, n=256):
    X = torch.randn(n, 8)
    return X, (X[:, :4] @ torch.randn(4, classes)).argmax(1)
"""


@dataclass(frozen=True, slots=True)
class Program:
    """One cell."""

    name: str
    cause: str
    half: str
    source: str
    framework: str = "torch"

    @property
    def healthy(self) -> bool:
        return self.cause == "healthy"


def programs(*files: str) -> list[Program]:
    """Every program of these files; of all of them when none is named."""
    found = []
    for path in sorted(HERE.glob("*.cells")):
        if files and path.stem not in files:
            continue
        framework = path.stem.partition("_")[0]
        text = path.read_text(encoding="utf-8")
        heads = list(_HEAD.finditer(text))
        for head, following in zip(heads, [*heads[1:], None]):
            source = text[head.end() + 1 : following.start() if following else len(text)]
            found.append(Program(head[1], head[2], head[3], source, framework))
    return found


def run_here(program: Program, folder: Path, level: str = "guard") -> Diagnosis:
    """Run it in this process, watched, and diagnose its run."""
    path = folder / f"{program.name}.py"
    prelude = _prelude(program.framework)
    path.write_text(prelude + program.source, encoding="utf-8")
    settings = Settings.load(dir=str(folder / "missteps"), name=program.name, level=level, strict=True)
    session = Session(settings)
    session.use(_adapter(program.framework))
    try:
        with session, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
    finally:
        session.end("finished")
    return diagnose(folder / "missteps" / program.name)


def timed(program: Program, folder: Path, level: str = "guard") -> tuple[Diagnosis, float]:
    began = time.perf_counter()
    diagnosis = run_here(program, folder, level)
    return diagnosis, time.perf_counter() - began


def _prelude(framework: str) -> str:
    return _TORCH if framework == "torch" else _MINDSPORE


_MINDSPORE = """import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
np.random.seed(0)
def blobs(classes, n=128):
    X = np.random.randn(n, 8).astype(np.float32)
    return Tensor(X), Tensor((X[:, :4] @ np.random.randn(4, classes)).argmax(1).astype(np.int32))
"""


def _adapter(framework: str):
    os.environ.setdefault("GLOG_v", "3")
    if framework == "torch":
        from misstep.adapters.pytorch.adapter import PyTorchAdapter

        return PyTorchAdapter()
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

    return MindSporeAdapter()
