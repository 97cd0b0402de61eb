"""Who in the batch is guilty: the step is run again on parts of its batch until single samples are left.

    64 ─ bad ─► 32 │ 32 ─ bad ─► 16 │ 16 ─ … ─► sample 17          about 2·log2(64) runs for one guilty sample

A run keeps the shape of the batch: the places of the samples left out are filled with others, so that a network which
expects 64 samples still gets 64. Once some samples are known to be healthy, they do the filling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from misstep.sentences import replay as texts

_MOST_GUILTY = 8
"""More guilty samples than this and the batch as a whole is to blame."""


@dataclass(frozen=True, slots=True)
class Guilty:
    """What the search found."""

    samples: tuple[int, ...]
    of: int
    runs: int
    complete: bool = True
    """False when the search was given up with parts of the batch unsearched."""
    proven: bool = False
    """True when the step is healthy without them."""

    def sentence(self, indices: Sequence[int] = (), names: Sequence[str] = ()) -> str:
        """'sample 17 of the 64 in the batch causes it (dataset index 1041, cats/17.png)'."""
        if not self.samples:
            return ""
        known: list[str] = []
        if indices:
            known.append(texts.DATASET_INDEX.of(indices=[indices[one] for one in self.samples]))
        if names:
            known.append(", ".join(names[one] for one in self.samples))
        return (texts.ONE_SAMPLE if len(self.samples) == 1 else texts.SAMPLES).of(
            samples=self.samples,
            count=self.of,
            known=texts.KNOWN_AS.of(names=known) if known else "",
            others="" if self.complete else texts.PERHAPS_OTHERS.of(),
        )


def find_guilty(size: int, bad_with: Callable[[Sequence[int], Sequence[int]], bool]) -> Guilty:
    """The samples without which the step would have been healthy; none when no sample is bad by itself.

    `bad_with(samples, healthy)` runs the step with only these samples, others filled in from the healthy ones.
    """
    search = _Search(size, bad_with)
    everyone = range(size)
    if not search.bad(everyone):
        return Guilty((), size, search.runs)
    search.look_in(everyone)
    guilty = tuple(sorted(search.guilty))
    rest = [one for one in everyone if one not in search.guilty]
    # A sample that is bad only beside others is found too, but then the rest is not healthy without it.
    proven = bool(guilty) and search.complete and (not rest or (search.may_run() and not search.bad(rest)))
    return Guilty(guilty, size, search.runs, search.complete, proven)


class _Search:
    def __init__(self, size: int, bad_with: Callable[[Sequence[int], Sequence[int]], bool]) -> None:
        self.bad_with = bad_with
        self.depth = max(1, math.ceil(math.log2(max(2, size))))
        self.runs = 0
        self.guilty: set[int] = set()
        self.healthy: list[int] = []
        self.complete = True

    def may_run(self) -> bool:
        """Enough for one guilty sample: 2·log2(size) + 4; each further one is granted as much again."""
        return self.runs < 2 * self.depth * max(1, len(self.guilty)) + 4

    def bad(self, samples: Sequence[int]) -> bool:
        self.runs += 1
        found = self.bad_with(samples, self.healthy)
        if not found:
            self.healthy.extend(one for one in samples if one not in self.healthy)
        return found

    def look_in(self, samples: Sequence[int]) -> None:
        """These are known to be bad together."""
        if len(samples) == 1:
            self.guilty.add(samples[0])
            return
        if not self.may_run() or len(self.guilty) >= _MOST_GUILTY:
            self.complete = False
            return
        middle = len(samples) // 2
        left, right = samples[:middle], samples[middle:]
        left_bad = self.bad(left)
        if left_bad:
            self.look_in(left)
            if not self.may_run():
                self.complete = False
                return
        # Both halves are asked, unless one must be bad because the other is not.
        if not left_bad or self.bad(right):
            self.look_in(right)
