"""Capsules of a run: steps kept whole, to be run again later.

missteps/fox/rank-0/capsules/step-412.capsule          weights, optimizer, random numbers, batch, digests
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from misstep.errors import ReplayError
from misstep.sentences import replay as texts
from misstep.store.layout import rank_paths, ranks_in

_NAME = re.compile(r"step-(\d+)\.capsule")


def capsule_path(run: Path, rank: int, step: int) -> Path:
    return rank_paths(run, rank).directory / "capsules" / f"step-{step}.capsule"


def capsules_of(run: Path) -> dict[tuple[int, int], Path]:
    """By (rank, step), in order."""
    found: dict[tuple[int, int], Path] = {}
    for rank in ranks_in(run):
        folder = capsule_path(run, rank, 0).parent
        for path in folder.iterdir() if folder.is_dir() else ():
            if match := _NAME.fullmatch(path.name):
                found[rank, int(match[1])] = path
    return dict(sorted(found.items()))


def find_capsule(run: Path, step: int | None = None, rank: int | None = None, refused: Sequence[str] = ()) -> Path:
    """The capsule of that step; the first one kept when no step is named. `refused` says why others were not kept."""
    every = capsules_of(run)
    for (of_rank, of_step), path in every.items():
        if (step is None or of_step == step) and (rank is None or of_rank == rank):
            return path
    about = [text for text in refused if step is None or f"of step {step}:" in text]
    if about and (step is not None or not every):
        raise ReplayError(about[0])
    if not every:
        raise ReplayError(texts.NO_CAPSULES.of(run=run.name, steps=step or "100:110"))
    kept = [f"{run.name}@{of_step}" for _, of_step in every]
    raise ReplayError(texts.OTHER_CAPSULES.of(run=run.name, step=step, kept=kept))
