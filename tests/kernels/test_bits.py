"""Questions about bits: is anything not finite, has memory changed, which powers of two occur."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from expected import EVERY, FLOATS

from misstep.kernels import DTYPES, _numpy, exponent_range


def place(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("name", FLOATS)
def test_one_bad_value_anywhere_raises_the_flag(kernels, name):
    code = DTYPES[name]
    good = np.random.default_rng(0).standard_normal(20_001).astype(FLOATS[name])
    bad = []
    for special in (math.nan, math.inf, -math.inf):
        for where in (0, 31, 8191, 8192, 20_000):
            tensor = good.copy()
            tensor[where] = special
            bad.append(tensor)
    tensors = [good, *bad, good[:0]]
    flags = kernels.nonfinite_many([place(t) for t in tensors], [t.size for t in tensors], [code] * len(tensors))
    assert list(flags) == [not np.isfinite(t.astype(float)).all() for t in tensors]


def test_the_largest_finite_value_is_finite(kernels):
    for name, kind in FLOATS.items():
        codes = np.arange(256, dtype=np.uint8) if np.dtype(kind).itemsize == 1 else None
        if codes is not None:
            for code in codes.view(kind):
                one = code.reshape(1)
                flag = kernels.nonfinite_many([place(one)], [1], DTYPES[name])[0]
                assert flag == (not np.isfinite(float(one[0]))), (name, one)
    top = np.array([np.finfo(np.float32).max, -np.finfo(np.float32).max], np.float32)
    assert list(kernels.nonfinite_many([place(top)], [2], DTYPES["f32"])) == [0]


def test_integers_are_always_finite_and_complex_parts_are_looked_at(kernels):
    numbers = np.full(100, -1, np.int32)
    pairs = np.ones(100, np.complex64)
    bad = pairs.copy()
    bad[99] = complex(0, math.nan)
    flags = kernels.nonfinite_many(
        [place(numbers), place(pairs), place(bad)], [100] * 3, [DTYPES["i32"], DTYPES["c64"], DTYPES["c64"]]
    )
    assert bytes(flags) == b"\0\0\1"


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 4095, 4096, 4097, 100_000, 2_000_003])
def test_the_digest_is_the_same_in_every_engine(kernels, size):
    memory = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    assert kernels.digest(place(memory), size) == _numpy.digest(place(memory), size)
    assert kernels.digest_bytes(memory.tobytes()) == kernels.digest(place(memory), size)


def test_any_changed_bit_changes_the_digest(kernels):
    memory = np.random.default_rng(0).integers(0, 256, 9000, dtype=np.uint8)
    seen = {kernels.digest(place(memory), memory.size)}
    for byte in range(0, 9000, 7):
        memory[byte] ^= 1 << (byte % 8)
        seen.add(kernels.digest(place(memory), memory.size))
    assert len(seen) == 1 + len(range(0, 9000, 7))


def test_moved_bytes_and_other_lengths_of_zeros_have_other_digests(kernels):
    zeros = np.zeros(20_000, np.uint8)
    lengths = {kernels.digest(place(zeros), n) for n in range(0, 20_000, 50)}
    assert len(lengths) == 400
    places = set()
    for where in range(0, 20_000, 8):
        zeros[:] = 0
        zeros[where] = 1
        places.add(kernels.digest(place(zeros), zeros.size))
    assert len(places) == 2500
    blocks = np.arange(4096, dtype=np.uint8).repeat(2).reshape(2, 4096)
    blocks[1] += 1
    assert kernels.digest(place(blocks), 8192) != kernels.digest(place(blocks[::-1].copy()), 8192)


def test_half_of_all_bits_flip_when_one_input_bit_does(kernels):
    memory = np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8)
    start = kernels.digest(place(memory), 5000)
    flips = []
    for bit in range(0, 40_000, 97):
        memory[bit // 8] ^= 1 << (bit % 8)
        flips.append(bin(start ^ kernels.digest(place(memory), 5000)).count("1"))
        memory[bit // 8] ^= 1 << (bit % 8)
    assert 31 < np.mean(flips) < 33  # 412 samples of Binomial(64, 1/2): the mean has a deviation of 0.2
    assert min(flips) > 10


def test_many_digests_equal_single_ones(kernels):
    tensors = [np.arange(n, dtype=np.float32) for n in range(300)]
    addresses, sizes = [place(t) for t in tensors], [t.nbytes for t in tensors]
    assert kernels.digest_many(addresses, sizes) == [kernels.digest(a, n) for a, n in zip(addresses, sizes)]


@pytest.mark.parametrize("name", EVERY)
def test_exponents_are_counted_per_power_of_two(kernels, name):
    random = np.random.default_rng(2)
    kind = np.dtype(EVERY[name])
    if name == "bool":
        array = random.random(5000) < 0.5
    elif kind.kind == "c":
        array = (random.standard_normal(5000) * 10.0 ** random.uniform(-30, 30, 5000)).astype(kind)
    else:
        array = random.integers(0, 256, 5000 * kind.itemsize, dtype=np.uint8).view(kind)
    low, high = exponent_range(DTYPES[name])
    with np.errstate(all="ignore"):
        sizes = np.abs(array.astype(np.complex128 if kind.kind == "c" else np.longdouble))
    finite = sizes[np.isfinite(sizes)]
    exponents = np.frexp(finite[finite != 0])[1] - 1
    want = [(finite == 0).sum(), (exponents < low).sum(), np.isinf(sizes).sum(), np.isnan(sizes).sum()]
    want += [(exponents == power).sum() for power in range(low, high + 1)]
    got = kernels.exponent_histogram(array)
    assert got.tolist() == [int(n) for n in want]
    assert got.sum() == array.size


def test_the_most_negative_integer_has_its_own_power(kernels):
    bins = kernels.exponent_histogram(np.array([-(2**63), 2**63 - 1, 1, 0], np.int64))
    assert (bins[4 + 63], bins[4 + 62], bins[4], bins[0]) == (1, 1, 1, 1)


def say(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_the_environment_chooses_the_engine():
    show = "from misstep import kernels; print(kernels.backend())"
    assert say(show, MISSTEP_KERNELS="numpy") == "numpy"
    assert "is not a kind of kernels; native and numpy are" in say(show, MISSTEP_KERNELS="fast")


def test_the_environment_caps_the_instruction_set():
    pytest.importorskip("misstep.kernels._native", reason="built without a compiler")
    show = "from misstep import kernels; print(kernels.backend())"
    assert say(show, MISSTEP_ISA="plain") == "native (plain)"
    assert "is not an instruction set" in say(show, MISSTEP_ISA="sse9", MISSTEP_KERNELS="native")


def test_importing_the_kernels_loads_no_framework():
    loaded = say(
        "import sys, misstep.kernels; print([n for n in ('torch', 'mindspore', 'ml_dtypes') if n in sys.modules])"
    )
    assert loaded == "[]"
