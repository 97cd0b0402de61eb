"""How fast the kernels are, held against what torch does with the same memory.

    python bench/kernels.py            a table
    python bench/kernels.py --json     {"control": ..., "rows": [{"case", "value", "unit"}]}

Ratios are to torch.sum of the same tensor, one thread, the two taken in turn so that a busy machine slows both; the
ratio is of the fastest times. `control` is torch.sum against itself in the same arrangement: what noise alone gives.
A tensor is measured twice: as the only one (small ones then live in the processor's cache), and as one of a set
larger than the cache, which is how a training step meets its tensors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from measure import Rows, bench, farthest, options

from misstep import kernels
from misstep.kernels import DTYPES, SUMMARY

CACHE_BYTES = 96 << 20
"""A set of tensors this large does not stay in the last-level cache of the machines we know."""

ROUNDS_SECONDS = 1.0
TABLE = np.zeros(5000, SUMMARY)


@dataclass(frozen=True, slots=True)
class Row:
    case: str
    value: float
    unit: str


def in_turn(*actions: Callable[[], object]) -> list[float]:
    """The fastest time of each action in seconds, the actions taking turns for about a second."""
    best = [float("inf")] * len(actions)
    deadline = time.perf_counter() + ROUNDS_SECONDS
    rounds = 0
    while rounds < 15 or (time.perf_counter() < deadline and rounds < 5000):
        for place, action in enumerate(actions):
            start = time.perf_counter()
            action()
            best[place] = min(best[place], time.perf_counter() - start)
        rounds += 1
    return best


def full_statistics(name: str, size: int, *, cached: bool) -> tuple[list[Row], float]:
    """Full statistics against torch.sum; the second number is torch.sum against itself."""
    dtype = getattr(torch, name)
    bytes_each = size * torch.empty(0, dtype=dtype).element_size()
    copies = 1 if cached else max(3, CACHE_BYTES // bytes_each)
    tensors = [torch.randn(size).to(dtype) for _ in range(copies)]
    code = DTYPES[name]
    turns = [0, 0, 0]

    def next_tensor(who: int) -> torch.Tensor:
        # Each action walks the set by itself, a third of it apart from the others: nobody finds what another just read.
        turns[who] += 1
        return tensors[(turns[who] + who * copies // 3) % copies]

    def ours() -> None:
        tensor = next_tensor(0)
        kernels.summarize_memory(tensor.data_ptr(), size, code, TABLE, 0)

    mine, theirs, again = in_turn(ours, lambda: torch.sum(next_tensor(1)), lambda: torch.sum(next_tensor(2)))
    where = "cached" if cached else "not cached"
    case = f"full statistics {name} {size:.0e} {where}"
    rows = [Row(case, mine / min(theirs, again), "x torch.sum"), Row(f"{case}, speed", bytes_each / mine / 1e9, "GB/s")]
    return rows, theirs / again


def many_small(number: int = 5000, size: int = 1000) -> list[Row]:
    tensors = [torch.randn(size) for _ in range(number)]
    addresses, counts, codes = [t.data_ptr() for t in tensors], [size] * number, [DTYPES["f32"]] * number

    def torch_each() -> bool:
        return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)

    ours, guard, theirs = in_turn(
        lambda: kernels.summarize_many(addresses, counts, codes, TABLE),
        lambda: kernels.nonfinite_many(addresses, counts, codes),
        torch_each,
    )
    return [
        Row("full statistics of 5000 tensors of 1000 in one call", ours * 1e3, "ms"),
        Row("the same against isfinite().all() each", theirs / ours, "times faster"),
        Row("nonfinite flags of 5000 tensors of 1000 in one call", guard * 1e3, "ms"),
    ]


def other_kernels(size: int = 1_000_000) -> list[Row]:
    a = torch.randn(size)
    b = a + 1e-3 * torch.randn(size)
    left, right, code = a.data_ptr(), b.data_ptr(), DTYPES["f32"]
    change, compare = np.zeros(1, kernels.CHANGE), np.zeros(1, kernels.COMPARE)
    bins = np.zeros(kernels.exponent_bins(code), np.int64)
    times = in_turn(
        lambda: kernels.digest(left, 4 * size),
        lambda: kernels.nonfinite_many([left], [size], [code]),
        lambda: kernels.change_memory(left, right, size, code, 1e-5, 1e-8, change, 0),
        lambda: kernels.compare_memory(left, code, right, code, size, 1e-5, 1e-8, compare, 0),
        lambda: kernels.exponents_memory(left, size, code, bins),
    )
    names = ["digest", "nonfinite", "change", "compare", "exponent histogram"]
    sizes = [4 * size, 4 * size, 8 * size, 8 * size, 4 * size]
    rows = [Row(f"{name} float32 1e6", n / t / 1e9, "GB/s") for name, n, t in zip(names, sizes, times)]
    tiny = torch.randn(8)
    address, calls = tiny.data_ptr(), range(1000)

    def thousand_calls() -> None:
        for _ in calls:
            kernels.summarize_memory(address, 8, code, TABLE, 0)

    (thousand,) = in_turn(thousand_calls)
    return [*rows, Row("one call for a tensor of 8 elements", thousand * 1e3, "µs")]


def main() -> None:
    bench(options(__doc__), lambda given: everything())


def everything() -> tuple[float, Rows]:
    torch.set_num_threads(1)
    rows: list[Row] = []
    controls: list[float] = []
    for name, size, cached in [
        ("float32", 1_000_000, True),
        ("float32", 1_000_000, False),
        ("float32", 3_000_000, False),
        ("float32", 10_000_000, False),
        *((name, size, False) for name in ("float16", "bfloat16", "float64") for size in (1_000_000, 10_000_000)),
        *((name, 1_000_000, True) for name in ("float16", "bfloat16", "float64")),
    ]:
        measured, control = full_statistics(name, size, cached=cached)
        rows += measured
        controls.append(control)
    rows += many_small()
    rows += other_kernels()
    return farthest(controls), [asdict(row) for row in rows]


if __name__ == "__main__":
    main()
