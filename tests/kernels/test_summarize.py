"""Summaries: every type, every layout, every kind of value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from expected import COMPLEX, EVERY, FLOATS, INTEGERS, assert_summary, summary
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from misstep.kernels import DTYPES, ITEM_BYTES, SUMMARY

SIZES = [1, 2, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 512, 513, 1000, 4095, 4096, 4097, 8200, 70_001]


def sample(name: str, size: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if name == "bool":
        return random.random(size) < 0.3
    if name in INTEGERS:
        bounds = np.iinfo(name)
        return random.integers(bounds.min, bounds.max, size, dtype=name, endpoint=True)
    if name in COMPLEX:
        return (random.standard_normal(size) + 1j * random.standard_normal(size)).astype(name)
    return random.standard_normal(size).astype(FLOATS[name])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EVERY)
def test_every_type_and_length_agrees_with_numpy(kernels, name, size):
    array = sample(name, size)
    assert_summary(kernels.summarize(array), array)


@pytest.mark.parametrize("name", [name for name, kind in FLOATS.items() if np.dtype(kind).itemsize <= 2])
def test_every_bit_pattern_of_a_narrow_float_is_understood(kernels, name):
    kind = np.dtype(FLOATS[name])
    codes = np.arange(256**kind.itemsize, dtype=f"u{kind.itemsize}").view(kind)
    assert_summary(kernels.summarize(codes), codes)
    for code in codes[:: max(1, codes.size // 512)]:
        assert_summary(kernels.summarize(code.reshape(1)), code.reshape(1))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("place", [0, 5, 4095, 4096, 9000])
@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf, 0.0, -0.0])
def test_one_special_value_anywhere_is_counted(kernels, name, place, special):
    array = sample(name, 9001)
    array[place] = special
    assert_summary(kernels.summarize(array), array)


@pytest.mark.parametrize("name", FLOATS)
def test_many_special_values_are_counted(kernels, name):
    random = np.random.default_rng(1)
    array = sample(name, 20_000)
    array[random.random(array.size) < 0.3] = math.nan
    array[random.random(array.size) < 0.3] = -math.inf
    array[random.random(array.size) < 0.1] = math.inf
    array[random.random(array.size) < 0.1] = -0.0
    assert_summary(kernels.summarize(array), array)


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("size", [1, 100, 5000])
def test_a_tensor_without_finite_values_has_no_moments(kernels, special, size):
    record = kernels.summarize(np.full(size, special, np.float32))
    assert record["count"] == size
    assert record["nan"] + record["pos_inf"] + record["neg_inf"] == size
    assert record["l2"] == 0.0
    assert all(math.isnan(record[name]) for name in ("min", "max", "mean", "abs_mean", "std"))


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_tensor_is_summarised(kernels, name):
    record = kernels.summarize(np.empty((3, 0), EVERY[name]))
    assert record["count"] == 0
    assert record["l2"] == 0.0
    assert math.isnan(record["mean"])


def test_a_scalar_is_summarised(kernels):
    record = kernels.summarize(np.float32(-2.5))
    assert record.item() == (1, 0, 0, 0, 0, 1, 0, -2.5, -2.5, -2.5, 2.5, 2.5, 0.0)


def test_minus_zero_is_a_zero_and_not_negative(kernels):
    record = kernels.summarize(np.full(5000, -0.0, np.float32))
    assert (record["zeros"], record["negatives"], record["positives"]) == (5000, 0, 0)
    assert math.copysign(1, record["min"]) == 1


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_subnormals_are_neither_zero_nor_lost(kernels, name):
    kind = np.dtype(FLOATS[name])
    array = np.arange(1, 6001, dtype=f"u{kind.itemsize}").view(kind)
    if name == "bfloat16":
        array = array[:127]
    assert_summary(kernels.summarize(array), array)


@pytest.mark.parametrize("size", [3, 1000, 10_000])
@pytest.mark.parametrize(
    ("name", "magnitude"),
    [
        ("float32", 1e30),
        ("float32", 3e38),
        ("bfloat16", 3e38),
        ("float64", 1e200),
        ("float64", 1e300),
        ("float32", 1e-30),
    ],
)
def test_no_finite_magnitude_overflows_or_vanishes(kernels, name, magnitude, size):
    array = (np.random.default_rng(2).uniform(-1, 1, size) * magnitude).astype(FLOATS[name])
    assert_summary(kernels.summarize(array), array)


def test_tiny_doubles_keep_their_norm(kernels):
    array = np.random.default_rng(3).uniform(-1, 1, 5000) * 1e-250
    assert_summary(kernels.summarize(array), array)


def test_the_largest_doubles_give_finite_statistics(kernels):
    array = np.tile([1.7e308, -1.7e308], 5000)
    record = kernels.summarize(array)
    assert record["mean"] == 0.0
    np.testing.assert_allclose([record["abs_mean"], record["std"]], 1.7e308)
    assert record["l2"] == np.finfo(float).max  # 1.7e310 does not fit; never infinite
    np.testing.assert_allclose(kernels.summarize(np.full(9000, 1.7e308))["mean"], 1.7e308)


def test_huge_and_tiny_doubles_live_in_one_tensor(kernels):
    array = np.random.default_rng(4).standard_normal(9000)
    array[7000] = 1e305
    assert_summary(kernels.summarize(array), array)


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("mean", [3.0, 1e3, -1e6, 1e-12])
def test_a_small_spread_around_a_large_mean_is_not_cancelled(kernels, name, mean):
    spread = abs(mean) * (1e-9 if name == "float64" else 1e-4)
    array = (mean + spread * np.random.default_rng(5).standard_normal(50_000)).astype(name)
    record = kernels.summarize(array)
    np.testing.assert_allclose(record["std"], summary(array)["std"], rtol=1e-5)


def test_a_mean_that_jumps_between_blocks_is_followed(kernels):
    random = np.random.default_rng(6)
    array = np.concatenate([m + random.standard_normal(4096) for m in (100, -100, 0, 1e4, 5)]).astype(np.float32)
    assert_summary(kernels.summarize(array), array)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "uint8"])
def test_a_constant_tensor_has_no_spread(kernels, name):
    array = np.full(100_000, 0.1 if name != "uint8" else 200).astype(EVERY[name])
    record = kernels.summarize(array)
    assert record["std"] == 0.0
    np.testing.assert_allclose(record["mean"], float(array[0]), rtol=1e-12)
    assert_summary(record, array)


LAYOUTS = {
    "transposed": lambda a: a.transpose(2, 0, 1),
    "reversed": lambda a: a[::-1, :, ::-1],
    "every second": lambda a: a[:, ::2, 1::3],
    "a column": lambda a: a[:, 3, :],
    "expanded": lambda a: np.broadcast_to(a[:, :1, :], a.shape),
    "expanded scalar": lambda a: np.broadcast_to(a[1, 1, 1], (50, 60)),
    "overlapping windows": lambda a: np.lib.stride_tricks.sliding_window_view(a.reshape(-1), 7)[::3],
    "a row of long rows": lambda a: a.reshape(12, -1)[:, 5:],
    "fortran order": np.asfortranarray,
    "axes of size one": lambda a: a[:1, :, :1],
    "nothing": lambda a: a[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int8", "complex128", "bool"])
def test_any_layout_counts_every_logical_element(kernels, name, layout):
    array = LAYOUTS[layout](sample(name, 24 * 37 * 41).reshape(24, 37, 41))
    assert_summary(kernels.summarize(array), np.ascontiguousarray(array))


def test_byte_swapped_and_misaligned_arrays_are_read(kernels):
    array = sample("float32", 1000)
    assert_summary(kernels.summarize(array.astype(">f4")), array)
    shifted = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view("<f4")
    assert_summary(kernels.summarize(shifted), array)
    rows = np.zeros(1000, [("tag", "u1"), ("value", "<f4")])
    rows["value"] = array
    assert_summary(kernels.summarize(rows["value"]), array)


def test_thousands_of_tensors_in_one_call_equal_one_call_each(kernels):
    names = list(EVERY)
    tensors = [sample(names[i % len(names)], i % 700, seed=i) for i in range(2000)]
    addresses = [t.__array_interface__["data"][0] for t in tensors]
    counts, codes = [t.size for t in tensors], [DTYPES[t.dtype.name] for t in tensors]
    together, singly = np.zeros(2003, SUMMARY), np.zeros(2003, SUMMARY)
    kernels.summarize_many(addresses, counts, codes, together, 3)
    for row, (address, count, code) in enumerate(zip(addresses, counts, codes), start=3):
        kernels.summarize_memory(address, count, code, singly, row)
    assert together.tobytes() == singly.tobytes()
    as_arrays = np.zeros(2003, SUMMARY)
    kernels.summarize_many(np.array(addresses), np.array(counts), np.array(codes), as_arrays, 3)
    assert as_arrays.tobytes() == together.tobytes()


def test_one_code_serves_a_whole_list(kernels):
    tensors = [sample("float32", 50, seed=i) for i in range(10)]
    out = np.zeros(10, SUMMARY)
    kernels.summarize_many([t.ctypes.data for t in tensors], [50] * 10, DTYPES["f32"], out)
    np.testing.assert_allclose(out["mean"], [t.mean() for t in tensors], atol=1e-7)


def test_more_than_2_31_elements_are_counted(kernels):
    value = np.array([-3], np.int8)
    out = np.zeros(1, SUMMARY)
    kernels.summarize_strided(value.ctypes.data, (50_000, 50_000), (0, 0), DTYPES["i8"], out, 0)
    assert (out[0]["count"], out[0]["negatives"], out[0]["mean"]) == (2_500_000_000, 2_500_000_000, -3.0)
    np.testing.assert_allclose(out[0]["l2"], 3 * 50_000, rtol=1e-12)


def test_flushing_denormals_elsewhere_changes_nothing():
    torch = pytest.importorskip("torch")
    from misstep.kernels import summarize

    array = np.arange(1, 5001, dtype=np.uint32).view(np.float32)
    calm = summarize(array)
    assert torch.set_flush_denormal(True)
    try:
        assert summarize(array) == calm
    finally:
        torch.set_flush_denormal(False)
    assert calm["zeros"] == 0


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((1, -1, DTYPES["f32"]), ValueError, "cannot be negative"),
        ((0, 5, DTYPES["f32"]), ValueError, "no memory"),
        ((1, 5, 99), ValueError, "unknown dtype code 99"),
    ],
)
def test_a_wrong_block_is_refused_in_words(kernels, arguments, error, words):
    with pytest.raises(error, match=words):
        kernels.summarize_memory(*arguments, np.zeros(1, SUMMARY), 0)
    with pytest.raises(error, match=words):
        kernels.summarize_many(*([x] for x in arguments), np.zeros(1, SUMMARY))


def test_a_row_outside_the_table_is_refused(kernels):
    array = np.ones(4)
    for row in (1, -1, 2**40):
        with pytest.raises(IndexError, match="do not fit a table of 1 rows"):
            kernels.summarize_memory(array.ctypes.data, 4, DTYPES["f64"], np.zeros(1, SUMMARY), row)
    with pytest.raises(ValueError, match="equally many"):
        kernels.summarize_many([1, 2], [3], [0, 0], np.zeros(4, SUMMARY))


def test_an_unknown_dtype_is_named(kernels):
    with pytest.raises(TypeError, match="no statistics for dtype <U3"):
        kernels.summarize(np.array(["abc"]))


def test_item_sizes_match_numpy():
    for name, kind in EVERY.items():
        assert ITEM_BYTES[DTYPES[name]] == np.dtype(kind).itemsize


anything = st.sampled_from(["float32", "float64", "float16"]).flatmap(
    lambda name: arrays.arrays(
        name, arrays.array_shapes(max_dims=3, max_side=40), elements=arrays.from_dtype(np.dtype(name))
    )
)


@settings(max_examples=200, deadline=None)
@given(array=anything)
def test_any_array_agrees_with_numpy(kernels, array):
    with np.errstate(all="ignore"):
        assert_summary(kernels.summarize(array), array)
