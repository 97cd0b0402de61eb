"""Runs to look around in, made on the spot: one that breaks with NaN, one that crashes, two that are fine.

They are ordinary runs of an ordinary script, which lies beside them and may be changed and run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from misstep.errors import MisstepError, need
from misstep.sentences.cli import live as words
from misstep.store.labels import Labels, write_labels
from misstep.store.layout import is_run

FOLDER = Path("missteps-demo")
SHOWN = "nan-in-block-2"
"""The run the page opens on."""
_RUNS: dict[str, tuple[str, ...]] = {
    SHOWN: ("--lr", "0.05", "--fault", "log"),
    "healthy": ("--lr", "0.05"),
    "too-slow": ("--lr", "0.002", "--width", "16"),
    "wrong-width": ("--lr", "0.05", "--fault", "shape"),
}
_TAGS = {"healthy": "baseline"}


def make_demo(folder: Path, tell: Callable[[str], None]) -> None:
    """The runs of the demonstration in this folder; those that are there already are left alone."""
    if find_spec("torch") is None:  # looked for, not imported: the page needs none of it
        need("torch", "for the demonstration", extra="torch")
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "train.py"
    if not script.exists():
        script.write_text((Path(__file__).parent / "training.txt").read_text(encoding="utf-8"), encoding="utf-8")
    missing = [name for name in _RUNS if not is_run(folder / name)]
    for at, name in enumerate(missing, 1):
        tell(words.DEMO_RUN(at=at, of=len(missing), run=name))
        _train(folder, script, name)


def _train(folder: Path, script: Path, name: str) -> None:
    ours = [sys.executable, "-m", "misstep", "run", "--quiet", "--no-ui", "--level", "op"]
    # The values that tripped it are kept, so that they can be looked at.
    kept = ["--watch", "tensor_overflow", "--then", "dump", "--dir", str(folder.absolute()), "--name", name]
    command = [*ours, *kept, "python", script.name, *_RUNS[name]]
    # A run of its own, whatever this process belongs to.
    outside = {key: value for key, value in os.environ.items() if not key.startswith("MISSTEP_")}
    outside["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), outside.get("PATH", "")])
    done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True)
    if not is_run(folder / name):
        raise MisstepError(words.DEMO_FAILED.of(run=name, why=done.stderr.strip()[-500:]))
    if name in _TAGS:
        write_labels(folder / name, Labels((_TAGS[name],)))
