"""In which element types two sides compute: a whole side, or one that casts some operators (autocast), is one fact.

every row float64 against float32          one side computes in another precision
many results float32 against bfloat16      one side computes under autocast; its weights are the same
one row float32 against float16            no fact about the run: a difference of that row
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from misstep.store.foreign.elements import is_float
from misstep.store.foreign.source import Entry

_NARROW = ("float16", "bfloat16")
_SHARE = 0.15
"""Of what is computed, cast one way: fewer is a layer of its own, not autocast."""


@dataclass(frozen=True, slots=True)
class Precision:
    """The pair of types most rows have, and the pairs that autocast explains."""

    pair: tuple[str, str] | None = None
    cast: tuple[tuple[str, str], ...] = ()

    def usual(self, dtypes: tuple[str, str]) -> bool:
        return dtypes == self.pair or dtypes in self.cast

    @property
    def whole(self) -> tuple[str, str] | None:
        """Set when the whole of one side computes in another precision."""
        return self.pair if self.pair is not None and self.pair[0] != self.pair[1] else None

    @property
    def coarse(self) -> tuple[str, ...]:
        """The narrow types autocast computes in: what runs under it rounds to them inside, whatever it hands on."""
        return tuple({one for pair in self.cast for one in pair if one in _NARROW})

    @property
    def said(self) -> str:
        """'the right side computes in bfloat16 where the left computes in float32 (autocast)'"""
        if not self.cast:
            return ""
        left, right = self.cast[0]
        side, other = ("right", "left") if right in _NARROW else ("left", "right")
        narrow, wide = (right, left) if side == "right" else (left, right)
        return f"the {side} side computes in {narrow} where the {other} computes in {wide} (autocast)"


def precision_of(rows: Sequence[tuple[Entry, tuple[str, str]]]) -> Precision:
    """What the types of all pairs say together."""
    seen = Counter(dtypes for _, dtypes in rows if is_float(dtypes[0]) and is_float(dtypes[1]))
    if not seen:
        return Precision()
    pair, times = seen.most_common(1)[0]
    computed = [dtypes for entry, dtypes in rows if entry.role not in ("param", "buffer") and is_float(dtypes[0])]
    weights = [dtypes for entry, dtypes in rows if entry.role == "param" and is_float(dtypes[0])]
    equal_weights = all(left == right for left, right in weights)
    if equal_weights and weights:
        for side in (0, 1):
            cast = Counter(one for one in computed if one[side] in _NARROW and one[1 - side] not in _NARROW)
            if sum(cast.values()) >= max(3, _SHARE * len(computed)):
                usual = next((one for one, _ in seen.most_common() if one[0] == one[1]), pair)
                return Precision(usual, tuple(cast))
    if pair[0] == pair[1] or times > 0.6 * sum(seen.values()):
        return Precision(pair)
    return Precision((pair[0], pair[0]))
