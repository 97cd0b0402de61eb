"""One batch against the same batch in parts: micro-batches, which run a network several times in one step.

    left   fc:output     32 samples
    right  fc:output      8 samples     fc~2:output  8     fc~3:output  8     fc~4:output  8

What the calls of a node made is put together along its first axis and compared with what the other side made at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.compare.align import Alignment
from misstep.store.foreign.source import Entry, TensorSource

_Key = tuple[str, str, int, int | None, int | None]


@dataclass(slots=True)
class Batches:
    """Which side takes its batch in how many parts, and what belongs together."""

    parts: int = 1
    side: str = ""
    calls: dict[_Key, list[Entry]] = field(default_factory=dict)

    @property
    def said(self) -> str:
        return f"the {self.side} side takes each batch in {self.parts} parts (micro-batches)" if self.side else ""

    def arrays(
        self, one: Entry, other: Entry, left: TensorSource, right: TensorSource
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both arrays of a pair, the parts put together."""
        return self._whole(one, left, "left"), self._whole(other, right, "right")

    def _whole(self, entry: Entry, source: TensorSource, side: str) -> NDArray[Any]:
        others = self.calls.get(_key(entry), []) if side == self.side else []
        if not others or entry.call != 1:
            return source.array(entry)
        arrays = [source.array(one) for one in (entry, *others)]
        if entry.role == "loss" or not entry.shape:
            return np.asarray(np.sum(arrays, axis=0, dtype=arrays[0].dtype))
        return np.concatenate(arrays, axis=0)


def batches_of(found: Alignment) -> tuple[Batches, Alignment]:
    """How the two sides cut their batches, and the alignment without the parts that were put together."""
    ratios: Counter[tuple[str, int]] = Counter()
    for pair in found.pairs:
        ratios[_ratio(pair.left.shape, pair.right.shape)] += 1
    ratios.pop(("", 1), None)
    (side, parts), times = ratios.most_common(1)[0] if ratios else (("", 1), 0)
    spare = found.only_left if side == "left" else found.only_right
    calls: dict[_Key, list[Entry]] = defaultdict(list)
    for entry in spare:
        if 1 < entry.call <= parts:
            calls[_key(entry)].append(entry)
    whole = {key: sorted(entries, key=lambda one: one.call) for key, entries in calls.items()}
    whole = {key: entries for key, entries in whole.items() if len(entries) == parts - 1}
    if not side or times < 2 or not whole:
        return Batches(), found
    taken = {id(entry) for entries in whole.values() for entry in entries}
    rest = [entry for entry in spare if id(entry) not in taken]
    left, right = (rest, found.only_right) if side == "left" else (found.only_left, rest)
    return Batches(parts, side, whole), Alignment(found.pairs, left, right)


def _ratio(left: Sequence[int], right: Sequence[int]) -> tuple[str, int]:
    """(which side is smaller along the first axis alone, by which whole factor)."""
    if not left or len(left) != len(right) or tuple(left[1:]) != tuple(right[1:]) or left[0] == right[0]:
        return "", 1
    small, large = sorted((left[0], right[0]))
    if not small or large % small:
        return "", 1
    return ("left" if left[0] < right[0] else "right"), large // small


def _key(entry: Entry) -> _Key:
    return entry.name, entry.role, entry.slot, entry.step, entry.rank
