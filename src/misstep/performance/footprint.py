"""How much memory a training needs, before it runs: its first steps are rehearsed in a process of their own, without
values, and the largest batch that fits is found with a few rehearsals (the peak grows evenly with the batch, nearly).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misstep.capture.attach import child_environment
from misstep.errors import PerformanceError
from misstep.sentences.speed import footprint as words
from misstep.settings import Settings

SECONDS = 300.0
STEPS = 2
"""An optimizer's state is complete after the first update, so the second step is the largest."""
_MOST_BATCH = 1 << 20
_MOST_REHEARSALS = 20


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of a training's first steps, in bytes."""

    peak: int
    naive: int
    """If nothing were ever freed."""
    kinds: dict[str, int]
    """At the peak: weights, inputs, gradients, optimizer, activations, temporary."""
    peak_at: dict[str, Any]
    holders: tuple[dict[str, Any], ...]
    timeline: tuple[tuple[int, int], ...]
    samples: int
    """In a batch."""
    fake: bool
    """Predicted, without values; otherwise measured."""


@dataclass(frozen=True, slots=True)
class LargestBatch:
    samples: int
    peak: int
    next_peak: int | None
    """Of one sample more, which does not fit; None where the data ends first."""
    limit: int


def rehearse(
    command: Sequence[str],
    *,
    batch: int | None = None,
    fake: bool = True,
    seconds: float = SECONDS,
    changes: str = "",
) -> Footprint:
    """Run the first steps of a command for their memory alone; `fake`: without values, and without the memory."""
    with tempfile.TemporaryDirectory(prefix="misstep-rehearsal-") as folder:
        out = Path(folder) / "footprint.json"
        told = json.dumps({"out": str(out), "fake": fake, "steps": STEPS, "batch": batch})
        given = {"rehearse": told, "change": changes}
        environment = child_environment(tuple(command), Settings(given), set(given), Path(folder))
        try:
            done = subprocess.run(
                list(command),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise PerformanceError(words.TOO_LONG.of(seconds=seconds)) from None
        except OSError as error:
            raise PerformanceError(words.CANNOT_START.of(command=command[0], why=str(error))) from None
        try:
            facts = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            last = (done.stdout.strip().splitlines() or [""])[-1]
            raise PerformanceError(words.NO_STEP.of(code=done.returncode, last=last)) from None
    if "failed" in facts:
        source = facts["source"] or {"file": "?", "line": 0, "code": ""}
        raise PerformanceError(
            words.DEPENDS_ON_VALUES.of(operator=facts["operator"], file=source["file"], line=source["line"])
        )
    return Footprint(
        facts["peak"],
        facts["naive"],
        facts["kinds"],
        facts["peak_at"],
        tuple(facts["holders"]),
        tuple((at, live) for at, live in facts["timeline"]),
        facts["samples"],
        facts["fake"],
    )


def largest_batch(
    first: Footprint, limit: int, again: Callable[[int], Footprint], *, most: int = _MOST_BATCH
) -> LargestBatch | None:
    """The largest batch whose peak fits, and the proof: that of one sample more does not. None if one does not fit.

    The peak is nearly a straight line over the batch size, so the line through two rehearsals finds the place, and the
    interval around it shrinks from both sides.
    """
    fits, misses = 0, most + 1
    known: dict[int, int] = {first.samples: first.peak}
    for _ in range(_MOST_REHEARSALS):
        for size, peak in known.items():
            fits, misses = (max(fits, size), misses) if peak <= limit else (fits, min(misses, size))
        if misses - fits <= 1:
            break
        size = _guess(known, limit, fits, misses)
        found = again(size)
        if found.samples < size and found.peak <= limit:  # the data has no more samples
            return LargestBatch(found.samples, found.peak, None, limit)
        known[found.samples] = found.peak
    if misses - fits > 1:
        raise PerformanceError(words.NOT_FOUND.of(low=fits, high=misses - 1))
    return LargestBatch(fits, known[fits], known[misses], limit) if fits else None


def _guess(known: dict[int, int], limit: int, fits: int, misses: int) -> int:
    """Where the line through the two nearest rehearsals meets the limit; now and then the middle, for it may bend."""
    if len(known) == 1:
        (size,) = known
        return max(1, size * 2 if fits else size // 2)
    low, high = sorted(sorted(known, key=lambda size: abs(known[size] - limit))[:2])
    slope = (known[high] - known[low]) / (high - low)
    bounded = fits in known and misses in known
    if bounded and len(known) % 3 == 2 and misses - fits > 8:
        return (fits + misses) // 2
    guess = int(low + (limit - known[low]) / slope) if slope > 0 else 2 * fits
    if not bounded:
        guess = min(guess, 4 * fits) if fits else guess  # a line through a flat beginning points far beyond
    return min(max(guess, fits + 1), misses - 1)


def memory_limit() -> int:
    """Bytes a training may have here: what the machine has free, and what our control group allows."""
    limits = []
    try:
        told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(int(told["MemAvailable"].split()[0]) << 10)
    except (OSError, ValueError, KeyError):
        pass
    try:
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass
    return min(limits, default=0)
