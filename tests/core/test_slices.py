"""Slices and tiles: what numpy would give, safely, and without hiding a NaN."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misstep.core.slices import example, parse_slice
from misstep.errors import AddressError, CompareError
from misstep.protocol import tiles
from misstep.protocol.tensor_payloads import Found, Tile

SHAPE = (4, 3, 8)
ARRAY = np.arange(math.prod(SHAPE), dtype=np.float32).reshape(SHAPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[0, 1, ::2]", ARRAY[0, 1, ::2]),
        ("0,:2", ARRAY[0, :2]),
        ("...,-1", ARRAY[..., -1]),
        ("1,...", ARRAY[1]),
        ("", ARRAY),
        ("[]", ARRAY),
        ("[:, ::-1, 2:7:3]", ARRAY[:, ::-1, 2:7:3]),
        ("-1,-1,-1", ARRAY[-1, -1, -1]),
    ],
)
def test_a_slice_means_what_numpy_means(text: str, expected: np.ndarray):
    parsed = parse_slice(text, SHAPE)
    np.testing.assert_array_equal(parsed.of(ARRAY), expected)
    assert parsed.of(ARRAY).base is not None
    assert parsed.result_shape == np.shape(expected)


@pytest.mark.parametrize(
    "text", ["0,0,0,0", "9", "a", "0;1", "...,...", "::0", "[0", "__import__('os')", "1.5", "None"]
)
def test_a_slice_that_does_not_fit_is_told_with_one_that_does(text: str):
    with pytest.raises(AddressError) as told:
        parse_slice(text, SHAPE)
    assert str(told.value).endswith("try [0, :, :]")
    assert parse_slice(example(SHAPE), SHAPE).result_shape == (3, 8)


@given(st.text(alphabet="0123456789:,.- []x", max_size=20))
def test_any_text_is_read_or_refused_and_agrees_with_numpy(text: str):
    try:
        parsed = parse_slice(text, SHAPE)
    except AddressError:
        return
    assert parsed.of(ARRAY).shape == parsed.result_shape


def test_an_element_of_a_slice_knows_its_place_in_the_whole():
    parsed = parse_slice("1, :, 7::-2", SHAPE)
    for inner in np.ndindex(parsed.result_shape):
        assert ARRAY[parsed.index(inner)] == parsed.of(ARRAY)[inner]


def test_a_tile_is_a_window_and_touches_nothing_else():
    whole = np.zeros((1000, 1000), np.float32)
    whole[300:310, 400:420] = 7
    part = tiles.tile(whole, Tile(row=300, column=400, rows=10, columns=20))
    assert part.shape == (10, 20)
    assert (part == 7).all()


def test_one_nan_in_ten_thousand_still_shows_when_pooled():
    whole = np.ones((1000, 1000), np.float32)
    whole[123, 456] = np.nan
    whole[700, 10] = -np.inf
    whole[5, 5] = -9
    pooled = tiles.tile(whole, Tile(row=0, column=0, rows=10, columns=10, pool=100))
    assert np.argwhere(np.isnan(pooled)).tolist() == [[1, 4]]
    assert pooled[7, 0] == -np.inf
    assert pooled[0, 0] == -9
    assert (pooled[9] == 1).all()


def test_a_pooled_tile_at_the_ragged_edge_keeps_the_edge():
    whole = np.ones((25, 25), np.float32)
    whole[24, 24] = np.nan
    pooled = tiles.tile(whole, Tile(row=0, column=0, rows=4, columns=4, pool=10))
    assert pooled.shape == (3, 3)
    assert np.isnan(pooled[2, 2])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.bool_, np.int64])
def test_a_tile_has_a_type_a_browser_reads(dtype: type):
    part = tiles.tile(np.ones((4, 4), dtype), Tile(0, 0, 4, 4))
    assert part.dtype in (np.float32, np.uint8, np.int64)
    assert (part == 1).all()


def test_statistics_of_a_slice_are_over_its_finite_values():
    stats = tiles.statistics(np.array([1.0, -3.0, 0.0, np.nan, np.inf], np.float32))
    assert (stats.count, stats.nan, stats.pos_inf, stats.zeros, stats.negatives) == (5, 1, 1, 1, 1)
    assert (stats.min, stats.max, stats.abs_mean) == (-3.0, 1.0, pytest.approx(4 / 3))
    assert stats.std == pytest.approx(np.std([1.0, -3.0, 0.0]))


def test_a_histogram_counts_every_finite_value_once():
    values = np.r_[np.linspace(-1, 1, 1000), np.nan, np.inf]
    counted = tiles.histogram(values, 64)
    assert (sum(counted.counts), counted.nan, counted.pos_inf) == (1000, 1, 1)
    assert len(counted.edges) == 65


def test_the_next_and_the_previous_bad_element_are_found_across_blocks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiles, "BLOCK", 7)
    array = np.zeros((6, 6), np.float32)
    array[1, 2], array[4, 5] = np.nan, np.inf
    assert tiles.find_nonfinite(array) == Found((1, 2), "NaN")
    assert tiles.find_nonfinite(array, after=8) == Found((4, 5), "Infinity")
    assert tiles.find_nonfinite(array, after=29) == Found(None)
    assert tiles.find_nonfinite(array, after=29, forward=False) == Found((1, 2), "NaN")
    assert tiles.find_nonfinite(array, forward=False) == Found((4, 5), "Infinity")
    assert tiles.find_nonfinite(array[:, ::2], after=-1) == Found((1, 1), "NaN")
    assert tiles.find_nonfinite(np.zeros(3, np.int64)) == Found(None)


def test_ulps_count_the_floats_in_between():
    one = np.array([1.0, 0.0, -1.0, np.nan], np.float32)
    other = np.array([np.nextafter(np.float32(1), np.float32(2)), -0.0, -1.0, np.nan], np.float32)
    assert tiles.ulps(one, other).tolist() == [1, 0, 0, 0]
    assert tiles.ulps(np.float32([-1e-45]), np.float32([1e-45])).tolist() == [2]


def test_a_comparison_counts_what_is_out_of_tolerance_and_names_the_worst():
    one = np.zeros((3, 4), np.float32)
    other = one.copy()
    other[2, 1] = 0.5
    found = tiles.compare(one, other, atol=1e-3, rtol=0)
    assert (found.out_of_tolerance, found.max_absolute, found.worst) == (1, 0.5, (2, 1))
    assert tiles.compare(one, one).max_ulp == 0


def test_nan_against_nan_is_the_same_and_nan_against_a_number_is_not():
    bad = np.array([np.nan, 1.0], np.float32)
    assert tiles.compare(bad, bad).out_of_tolerance == 0
    found = tiles.compare(bad, np.array([0.0, 1.0], np.float32))
    assert (found.out_of_tolerance, found.same_nonfinite) == (1, False)


def test_tensors_of_different_shapes_are_not_compared():
    with pytest.raises(CompareError, match=r"\[2\] and \[3\]"):
        tiles.compare(np.zeros(2), np.zeros(3))
