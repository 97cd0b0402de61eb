"""One seed for everything that draws numbers, and an honest list of what it does not fix.

print(set_seed(1))
fixed     Python's random, numpy, torch, data loaders …
not fixed sums over several threads: their order may differ between machines …
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from misstep.errors import TrainError

LARGEST_SEED = 2**32 - 1
"""numpy takes no larger one."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something two runs of one program may differ by."""

    name: str
    fixed: bool
    why: str
    fix: str = ""
    """What to type, when there is something to type."""


@dataclass(frozen=True, slots=True)
class DeterminismReport:
    """What is fixed and what is not, in this process, now."""

    seed: int | None
    sources: tuple[Source, ...]

    @property
    def open(self) -> tuple[Source, ...]:
        """Those two runs may still differ by."""
        return tuple(source for source in self.sources if not source.fixed)

    def __str__(self) -> str:
        width = max(len(source.name) for source in self.sources)
        return "\n".join(
            f"{'fixed    ' if source.fixed else 'not fixed'}  {source.name:{width}}  {source.why}"
            + (f":  {source.fix}" if source.fix else "")
            for source in self.sources
        )


def set_seed(seed: int) -> DeterminismReport:
    """Seed Python, numpy, and every framework this program has imported, its data loaders included.

    >>> set_seed(1).open
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
        raise TrainError(f"a seed is a whole number from 0 to {LARGEST_SEED}, got {seed!r}")
    random.seed(seed)
    np.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
    if mindspore := sys.modules.get("mindspore"):
        mindspore.set_seed(seed)
        mindspore.dataset.config.set_seed(seed)
    _seeded[:] = [seed]
    return determinism_report()


def fix_randomness(seed: int = 1) -> DeterminismReport:
    """Fix everything a program can fix from inside: seeds, deterministic operators, one thread, the children's hashes.

    Call it before the network is made. What no call can fix is in the report.

    >>> print(misstep.fix_randomness())
    """
    os.environ["PYTHONHASHSEED"] = str(seed)  # for processes started from now on; this one's hashes are drawn already
    if torch := sys.modules.get("torch"):
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = False
        torch.set_num_threads(1)
    if mindspore := sys.modules.get("mindspore"):
        mindspore.set_context(deterministic="ON")
    return set_seed(seed)


def get_seed() -> int | None:
    """The seed of the last `set_seed`."""
    return _seeded[0] if _seeded else None


def seed_worker(worker_id: int) -> None:
    """For `DataLoader(worker_init_fn=seed_worker)`: a worker's Python and numpy follow its torch seed.

    torch already seeds them for its own workers; this is for loaders that do not.
    """
    torch = sys.modules["torch"]
    seed = torch.initial_seed() % (LARGEST_SEED + 1)
    random.seed(seed)
    np.random.seed(seed)


def determinism_report() -> DeterminismReport:
    """What two runs of this program, as it stands, may differ by."""
    seeded = bool(_seeded)
    word = "seeded" if seeded else "not seeded"
    fix = "" if seeded else "misstep.train.set_seed(1)"
    sources = [
        Source("random", seeded, word, fix),
        Source("numpy.random", seeded, word, fix),
        Source(
            "numpy generators",
            False,
            "default_rng() objects have seeds of their own",
            "np.random.default_rng(1)",
        ),
        _hash_seed(),
    ]
    if torch := sys.modules.get("torch"):
        sources += _of_torch(torch, seeded, word, fix)
    if mindspore := sys.modules.get("mindspore"):
        sources += _of_mindspore(mindspore, word, fix)
    return DeterminismReport(get_seed(), tuple(sources))


_seeded: list[int] = []


def _hash_seed() -> Source:
    value = os.environ.get("PYTHONHASHSEED", "random")
    fixed = value.isdigit()
    why = f"PYTHONHASHSEED={value}" if fixed else "the order of sets of strings differs between runs"
    return Source("hash seed", fixed, why, "" if fixed else "PYTHONHASHSEED=0 python train.py")


def _of_torch(torch: Any, seeded: bool, word: str, fix: str) -> list[Source]:
    threads = torch.get_num_threads()
    strict = torch.are_deterministic_algorithms_enabled()
    found = [
        Source("torch", seeded, word, fix),
        Source("torch data loaders", seeded, "shuffling and workers follow torch's seed" if seeded else word, fix),
        Source(
            "torch operators",
            strict,
            "only deterministic algorithms" if strict else "an operator may have a faster algorithm that is not",
            "" if strict else "set_context(deterministic='ON')",
        ),
        Source(
            "torch threads",
            threads == 1,
            f"{threads} threads; with another number the order of sums, and so the last bits, differ"
            if threads > 1
            else "one thread",
            "set_context(runtime_num_threads=1)" if threads > 1 else "",
        ),
    ]
    if torch.cuda.is_available():
        workspace = "CUBLAS_WORKSPACE_CONFIG" in os.environ
        tuned = torch.backends.cudnn.benchmark
        found += [
            Source("cuBLAS", workspace, "its workspace", "" if workspace else "CUBLAS_WORKSPACE_CONFIG=:4096:8"),
            Source(
                "cuDNN",
                not tuned,
                "its choice of algorithms",
                "torch.backends.cudnn.benchmark = False" if tuned else "",
            ),
        ]
    return found


def _of_mindspore(mindspore: Any, word: str, fix: str) -> list[Source]:
    known = mindspore.get_seed() is not None
    strict = mindspore.get_context("deterministic") == "ON"
    return [
        Source("mindspore", known, "seeded" if known else word, "" if known else fix),
        Source("mindspore datasets", known, "shuffling follows the seed" if known else word, "" if known else fix),
        Source(
            "mindspore operators",
            strict,
            "only deterministic algorithms" if strict else "an operator may have a faster algorithm that is not",
            "" if strict else "set_context(deterministic='ON')",
        ),
        Source(
            "mindspore layers",
            False,
            "nn.Dropout and initializers of layers made before the seed keep the one they drew",
            "set the seed before making the network",
        ),
    ]
