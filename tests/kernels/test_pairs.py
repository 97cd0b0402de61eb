"""Two tensors: what changed, and how close they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from expected import COMPLEX, EVERY, FLOATS, INTEGERS
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from misstep.kernels import DTYPES

random = np.random.default_rng(0)


def two(name: str, size: int = 5003) -> tuple[np.ndarray, np.ndarray]:
    if name in INTEGERS or name == "bool":
        a, b = (random.integers(0, 2 if name == "bool" else 100, size).astype(name) for _ in "ab")
    elif name in COMPLEX:
        a = (random.standard_normal(size) + 1j * random.standard_normal(size)).astype(name)
        b = (a * (1 + 1e-3 * random.standard_normal(size))).astype(name)
    else:
        a = random.standard_normal(size).astype(FLOATS[name])
        b = (a.astype(float) * (1 + 0.1 * random.standard_normal(size))).astype(FLOATS[name])
    return a, b


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


@pytest.mark.parametrize("name", EVERY)
def test_compare_agrees_with_numpy_for_every_type(kernels, name):
    a, b = two(name)
    x, y = wide(a), wide(b)
    delta = np.abs(x - y)
    record = kernels.compare(a, b, rtol=1e-2, atol=1e-3)
    against = np.where(y != 0, np.abs(y), np.where(x != 0, np.abs(x), 1))
    assert record["count"] == a.size
    assert record["within"] == (delta <= 1e-3 + 1e-2 * np.abs(y)).sum()
    assert record["equal"] == (x == y).sum()
    assert record["first_different"] == (int(np.argmax(x != y)) if (x != y).any() else -1)
    assert record["nonfinite_mismatch"] == 0
    got = [
        record[field] for field in ("max_abs", "mean_abs", "max_rel", "mean_rel", "rmse", "norm_a", "norm_b", "cosine")
    ]
    norm_a, norm_b = np.linalg.norm(x), np.linalg.norm(y)
    want = [delta.max(), delta.mean(), (delta / against).max(), (delta / against).mean(), np.sqrt((delta**2).mean())]
    want += [norm_a, norm_b, np.vdot(y, x).real / norm_a / norm_b]
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("left", ["float32", "bfloat16", "int32", "float8_e5m2"])
@pytest.mark.parametrize("right", ["float64", "float16", "uint8"])
def test_two_types_are_compared_in_float64(kernels, left, right):
    a, b = two(left)[0], two(right)[0]
    record = kernels.compare(a, b)
    np.testing.assert_allclose(record["max_abs"], np.abs(wide(a) - wide(b)).max(), rtol=1e-12)
    assert record["equal"] == (wide(a) == wide(b)).sum()
    assert record["max_ulp"] == -1


def test_nan_and_infinity_are_matched_by_kind(kernels):
    nan, inf = math.nan, math.inf
    a = np.array([nan, nan, inf, inf, inf, -inf, 1, 2], np.float32)
    b = np.array([nan, 1.0, inf, -inf, 3, -inf, 1, 2.5], np.float32)
    record = kernels.compare(a, b)
    assert record["equal"] == 4  # NaN with NaN, two equal infinities, 1 with 1
    assert record["nonfinite_mismatch"] == 3
    assert record["within"] == 3  # NaN is never close
    assert record["first_different"] == 1
    assert record["max_abs"] == 0.5


def test_zeros_of_two_signs_are_close_but_not_the_same_bits(kernels):
    record = kernels.compare(np.array([0.0, 1.0]), np.array([-0.0, 1.0]))
    assert (record["equal"], record["within"], record["max_ulp"], record["first_different"]) == (1, 2, 0, 0)


@pytest.mark.parametrize("name", FLOATS)
def test_neighbouring_values_are_one_ulp_apart(kernels, name):
    kind = np.dtype(FLOATS[name])
    a = np.ones(1000, kind)
    b = a.copy()
    b.view(f"u{kind.itemsize}")[700:701] += np.array(3, f"u{kind.itemsize}")
    record = kernels.compare(a, b)
    assert (record["max_ulp"], record["first_different"], record["equal"]) == (3, 700, 999)
    a[1], b[1] = -1, 1
    one = int(np.ones(1, kind).view(f"u{kind.itemsize}")[0])
    assert kernels.compare(a, b)["max_ulp"] == 2 * one


def test_the_distance_of_opposite_extremes_saturates(kernels):
    top = np.finfo(float).max
    record = kernels.compare(np.array([top, 1.0]), np.array([-top, 1.0]))
    assert record["max_ulp"] == 2**63 - 1
    assert record["max_abs"] == top  # the true distance does not fit
    assert kernels.compare(np.array([-(2**63)]), np.array([2**63 - 1]))["max_ulp"] == 2**63 - 1


@pytest.mark.parametrize("magnitude", [1e300, 1e-250])
def test_the_cosine_survives_extreme_magnitudes(kernels, magnitude):
    a = random.standard_normal(3000)
    b = a + 0.1 * random.standard_normal(3000)
    want = kernels.compare(a, b)
    got = kernels.compare(a * magnitude, b * magnitude)
    np.testing.assert_allclose(got["cosine"], want["cosine"], rtol=1e-12)
    np.testing.assert_allclose(got["norm_a"], want["norm_a"] * magnitude, rtol=1e-12)
    np.testing.assert_allclose(got["rmse"], want["rmse"] * magnitude, rtol=1e-12)


def test_a_tiny_angle_is_not_lost_in_float32_sums(kernels):
    a = random.standard_normal(100_000).astype(np.float32)
    b = a.copy()
    b[::2] *= np.float32(1 + 1e-6)
    exact = 1 - np.dot(a.astype(float), b.astype(float)) / np.linalg.norm(a.astype(float)) / np.linalg.norm(
        b.astype(float)
    )
    np.testing.assert_allclose(1 - kernels.compare(a, b)["cosine"], exact, atol=1e-14)


def test_zero_vectors_have_a_defined_cosine(kernels):
    zeros, ones = np.zeros(5), np.ones(5)
    assert kernels.compare(zeros, zeros)["cosine"] == 1.0
    assert kernels.compare(zeros, ones)["cosine"] == 0.0
    assert kernels.compare(np.empty(0), np.empty(0)).item()[:6] == (0, 0, 0, 0, -1, 0)


@pytest.mark.parametrize("name", EVERY)
def test_change_agrees_with_numpy_for_every_type(kernels, name):
    now, before = two(name)
    delta, old = np.abs(wide(now) - wide(before)), np.abs(wide(before))
    record = kernels.change(now, before, rtol=1e-2, atol=1e-3)
    assert (record["count"], record["nan"], record["inf"]) == (now.size, 0, 0)
    assert record["within"] == (delta <= 1e-3 + 1e-2 * old).sum()
    got = [record[field] for field in ("mean_abs", "max_abs", "mean_abs_before")]
    np.testing.assert_allclose(got, [delta.mean(), delta.max(), old.mean()], rtol=1e-12)


def test_change_counts_pairs_that_are_not_finite(kernels):
    nan, inf = math.nan, math.inf
    now = np.array([nan, nan, inf, inf, 1, 2], np.float32)
    before = np.array([nan, 1.0, inf, 1.0, 1, 3], np.float32)
    record = kernels.change(now, before)
    assert record.item() == (6, 2, 2, 2, 0.5, 1.0, 2.0)
    assert kernels.change(now, before, equal_nan=True)["within"] == 3


def test_change_of_the_largest_doubles_is_finite(kernels):
    top = np.finfo(float).max
    record = kernels.change(np.full(3000, top), np.full(3000, top / 2))
    np.testing.assert_allclose([record["mean_abs"], record["max_abs"], record["mean_abs_before"]], top / 2)


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_blocks_with_and_without_special_values_are_compared_alike(kernels, name):
    from misstep.kernels import _numpy
    from misstep.kernels._arrays import ArrayKernels

    random = np.random.default_rng(8)
    a = random.standard_normal(9000).astype(EVERY[name])
    b = (wide(a) * (1 + 1e-2 * random.standard_normal(9000))).astype(EVERY[name])
    b[:2048] = a[:2048]  # a block that is the same
    a[2500:2600], b[2550:2650] = 0, -0.0  # zeros against values, against each other, of either sign
    a[5000], b[5000], a[5001], b[5002] = math.inf, math.inf, math.nan, -math.inf
    a[7000], b[7000] = -a[7001], a[7001]
    for left, right in ((a, b), (b, a), (a[:2048], b[:2048]), (a[2048:4100], b[2048:4100])):
        got, want = kernels.compare(left, right), ArrayKernels(_numpy).compare(left, right)
        assert got.item()[:6] == want.item()[:6]
        np.testing.assert_allclose(got.item()[6:], want.item()[6:], rtol=1e-11)


def test_sides_that_do_not_fit_are_refused(kernels):
    with pytest.raises(ValueError, match="one dtype and one size"):
        kernels.change(np.ones(3), np.ones(3, np.float32))
    with pytest.raises(ValueError, match="align the shapes"):
        kernels.compare(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="complex tensor cannot be compared with a real one"):
        kernels.compare(np.ones(3), np.ones(3, complex))


pairs = st.sampled_from(["float32", "float64", "float16", "int64"]).flatmap(
    lambda name: st.integers(0, 60).flatmap(
        lambda n: st.tuples(*[arrays.arrays(name, n, elements=arrays.from_dtype(np.dtype(name))) for _ in range(2)])
    )
)


@settings(max_examples=150, deadline=None)
@given(pair=pairs)
def test_both_engines_give_the_same_record_for_any_pair(kernels, pair):
    from misstep.kernels import _numpy
    from misstep.kernels._arrays import ArrayKernels

    twin = ArrayKernels(_numpy)
    for got, want in [
        (kernels.compare(*pair), twin.compare(*pair)),
        (kernels.change(*pair), twin.change(*pair)),
    ]:
        assert got.item()[:4] == want.item()[:4]
        # A cosine near 0 is a difference of large numbers: known to a few roundings of 1, not of itself.
        rounding = [1e-14 if name == "cosine" else 1e-300 for name in got.dtype.names[4:]]
        for name, x, y, floor in zip(got.dtype.names[4:], got.item()[4:], want.item()[4:], rounding):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=floor, err_msg=name)


def test_every_named_type_has_one_code():
    assert len(set(DTYPES.values())) == len(EVERY)
