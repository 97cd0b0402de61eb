"""How gradients are best cut into all-reduces: late and few wastes the backward, early and many wastes latency.

    ready t₁ ≤ t₂ ≤ …     gradients as backward makes them            α + β·bytes   one all-reduce on a serial wire
    end(j) = min over i of  max(end(i), t_j) + α + β·(bytes i+1 … j)                exact, in n² steps

Prior art is MG-WFBP's model of the same wire. Of all plans within 1 % of the best the one with fewest segments is
taken: tiny tails are worth nothing, and cost latency where the model is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MB = 1 << 20
_FIRST_MB, _CAP_MB = 1, 25
"""torch's DistributedDataParallel closes its first bucket at 1 MB and the others at 25."""
WORTH = 0.02
"""A plan that promises less is left alone."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What an all-reduce takes: milliseconds, and milliseconds a byte."""

    latency: float
    per_byte: float


@dataclass(frozen=True, slots=True)
class Plan:
    cuts: tuple[int, ...]
    """The number of gradients after each segment; the last is all of them."""
    end: float
    """When the last all-reduce is over, milliseconds after backward began."""


def fit_wire(sizes: Sequence[float], times: Sequence[float]) -> Wire:
    """Latency and bandwidth of measured all-reduces, each size by its median; neither is ever negative."""
    known = sorted(set(sizes))
    medians = [float(np.median([ms for size, ms in zip(sizes, times) if size == one])) for one in known]
    if len(known) < 2:
        return Wire(medians[0] if medians else 0.0, 0.0)
    slope, base = np.polyfit(known, medians, 1, w=1 / np.maximum(medians, 1e-9))
    return Wire(max(float(base), 0.0), max(float(slope), 0.0))


def end_of(ready: Sequence[float], sizes: Sequence[int], wire: Wire, cuts: Sequence[int]) -> float:
    """When the last all-reduce of a plan is over."""
    end, start = 0.0, 0
    for cut in cuts:
        end = max(end, max(ready[start:cut])) + wire.latency + wire.per_byte * sum(sizes[start:cut])
        start = cut
    return end


def best_plan(ready: Sequence[float], sizes: Sequence[int], wire: Wire, *, most: int | None = None) -> Plan:
    """The plan that ends first, of all there are; with at most so many segments when told."""
    count = len(sizes)
    times = np.maximum.accumulate(np.asarray(ready, dtype=float))
    total = np.concatenate([[0.0], np.cumsum(np.asarray(sizes, dtype=float))])
    rounds = min(most or count, count)
    ends = np.full((rounds + 1, count + 1), np.inf)
    ends[0, 0] = 0.0
    before = np.zeros((rounds + 1, count + 1), dtype=int)
    for used in range(1, rounds + 1):
        for j in range(used, count + 1):
            choices = (
                np.maximum(ends[used - 1, :j], times[j - 1]) + wire.latency + wire.per_byte * (total[j] - total[:j])
            )
            before[used, j] = int(np.argmin(choices))
            ends[used, j] = choices[before[used, j]]
    used = int(np.argmin(ends[1:, count])) + 1
    cuts, j = [], count
    for step in range(used, 0, -1):
        cuts.append(j)
        j = int(before[step, j])
    return Plan(tuple(reversed(cuts)), float(ends[used, count]))


def fewest_within(ready: Sequence[float], sizes: Sequence[int], wire: Wire, *, slack: float = 0.01) -> Plan:
    """The plan with fewest segments that ends within 1 % of the best."""
    most = min(len(sizes), 32)
    best = best_plan(ready, sizes, wire, most=most)
    for count in range(1, len(best.cuts)):
        plan = best_plan(ready, sizes, wire, most=count)
        if plan.end <= (1 + slack) * best.end:
            return plan
    return best


def framework_cuts(sizes: Sequence[int], *, first_mb: float = _FIRST_MB, cap_mb: float = _CAP_MB) -> tuple[int, ...]:
    """Where torch's DistributedDataParallel cuts by itself: a bucket is closed once it holds its cap."""
    cuts: list[int] = []
    held, cap = 0.0, first_mb * MB
    for place, size in enumerate(sizes, 1):
        held += size
        if held >= cap:
            cuts.append(place)
            held, cap = 0.0, cap_mb * MB
    return tuple(cuts) if cuts and cuts[-1] == len(sizes) else (*cuts, len(sizes))


def bucket_caps_mb(sizes: Sequence[int], cuts: Sequence[int]) -> list[float]:
    """A plan as `bucket_cap_mb_list`: a bucket closes at its cap, so each is what its segment holds, a little less."""
    starts = [0, *cuts[:-1]]
    return [max(1, (sum(sizes[start:cut]) - 1) * 10_000 // MB) / 10_000 for start, cut in zip(starts, cuts)]


def fusion_config(cuts: Sequence[int]) -> list[int]:
    """A plan as MindSpore's `all_reduce_fusion_config`: the index of each segment's last gradient but the final one."""
    return [cut - 1 for cut in cuts]
