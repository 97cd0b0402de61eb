"""Digest and exponent histogram in numpy; the digest is the native one, number for number (native/bits.h says why)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from misstep.kernels._numpy_memory import BOOL, COMPLEX, blocks, check_block, check_rows, sizes_of, stored, values_of
from misstep.kernels.records import DTYPES, Buffer, Integers, exponent_bins, exponent_range

_BYTES = DTYPES["u8"]
_BLOCK = 4096
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def _avalanche(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _one(x: int) -> int:
    return int(_avalanche(np.array([x & _MASK], np.uint64))[0])


_KEYS = _avalanche(np.arange(1, 513, dtype=np.uint64) * np.uint64(_GOLDEN))


def digest(address: int, nbytes: int, /) -> int:
    check_block(address, nbytes, _BYTES)
    return _digest(stored(address, nbytes, _BYTES))


def digest_bytes(buffer: Buffer, /) -> int:
    return _digest(np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8))


def _digest(memory: NDArray[np.uint8]) -> int:
    nbytes = len(memory)
    total = _one(nbytes + _GOLDEN)
    whole = nbytes // _BLOCK
    for start in range(0, whole, 256):
        part = memory[start * _BLOCK : min(start + 256, whole) * _BLOCK]
        total += _blocks(part.view("<u8").reshape(-1, 512), start)
    if nbytes % _BLOCK:
        last = np.zeros(_BLOCK, np.uint8)
        last[: nbytes % _BLOCK] = memory[whole * _BLOCK :]
        total += _blocks(last.view("<u8").reshape(1, 512), whole)
    return _one(total)


def _blocks(words: NDArray[np.uint64], first: int) -> int:
    keyed = words ^ _KEYS
    products = (keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32))
    neighbours = words.reshape(-1, 256, 2)[:, :, ::-1].reshape(words.shape)
    lanes = (products + neighbours).reshape(-1, 64, 8).sum(axis=1, dtype=np.uint64)
    mixed = _avalanche(lanes + _KEYS[:8]).sum(axis=1, dtype=np.uint64)
    positions = np.arange(first + 1, first + 1 + len(words), dtype=np.uint64) * np.uint64(_GOLDEN)
    return int(_avalanche(mixed ^ positions).sum(dtype=np.uint64))


def digest_many(addresses: Integers, nbytes: Integers, /) -> list[int]:
    if len(addresses) != len(nbytes):
        raise ValueError(f"{len(addresses)} addresses and {len(nbytes)} sizes: they must be equally many")
    return [digest(int(address), int(size)) for address, size in zip(addresses, nbytes)]


@np.errstate(all="ignore")
def exponents_memory(address: int, count: int, dtype: int, bins: NDArray[np.int64], /) -> None:
    check_block(address, count, dtype)
    check_rows(bins, 0, exponent_bins(dtype), 8)
    low, high = exponent_range(dtype)
    for items in blocks(stored(address, count, dtype)):
        if items.dtype.kind in "iu" and items.dtype.itemsize == 8:  # exact where a float64 would round up a bin
            sizes = np.where(items < 0, np.uint64(0) - items.astype(np.uint64), items.astype(np.uint64))
            exponents = np.zeros(len(sizes), np.int64)
            for shift in (32, 16, 8, 4, 2, 1):
                larger = sizes >> np.uint64(shift) > 0
                exponents += shift * larger
                sizes = np.where(larger, sizes >> np.uint64(shift), sizes)
            bins[0] += int((items == 0).sum())
            bins[4:68] += np.bincount(exponents[items != 0], minlength=64)
            continue
        values = sizes_of(items, dtype) if dtype in COMPLEX or dtype == BOOL else values_of(items, dtype)
        finite = values[np.isfinite(values)]
        exponents = np.frexp(finite[finite != 0])[1] - 1
        bins[0] += int((finite == 0).sum())
        bins[1] += int((exponents < low).sum())
        bins[2] += int(np.isinf(values).sum())
        bins[3] += int(np.isnan(values).sum())
        bins[4 : 5 + high - low] += np.bincount(exponents[exponents >= low] - low, minlength=high - low + 1)
