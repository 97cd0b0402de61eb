"""A data pipeline read through: each thing that may be wrong with one, planted and found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from misstep.errors import MigrationError
from misstep.migration.data.checks import check_data, compare_data

COUNT = 40


def rows(seed: int = 0) -> list[tuple[Any, Any]]:
    """Forty normalised samples of four balanced classes."""
    draw = np.random.default_rng(seed)
    return [(draw.standard_normal(8).astype(np.float32), np.int64(at % 4)) for at in range(COUNT)]


def found(pipeline: Any) -> set[str]:
    """What was found, but for times, which are the machine's."""
    return {one.what for one in check_data(pipeline).findings} - {"slow"}


def changed(at: int, row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    data: list[tuple[Any, ...]] = list(rows())
    data[at] = row
    return data


class Liar:
    """Says it has ten samples more than it delivers."""

    def __len__(self) -> int:
        return COUNT + 10

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return iter(rows())


def test_a_sound_pipeline_has_no_findings() -> None:
    assert found(rows()) == set()


def test_a_length_that_lies_is_found() -> None:
    assert found(Liar()) == {"length"}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((np.ones(8, np.float32),), "columns"),
        ((np.arange(8, dtype=np.float64) / 8, np.int64(0)), "dtype"),
        ((np.full(8, np.nan, np.float32), np.int64(0)), "not_finite"),
        ((np.linspace(-1, 1, 8).astype(np.float32), np.int64(-1)), "negative_label"),
    ],
)
def test_one_strange_sample_is_found(row: tuple[Any, ...], what: str) -> None:
    assert what in found(changed(7, row))


def test_the_sample_with_nan_is_named() -> None:
    report = check_data(changed(7, (np.full(8, np.nan, np.float32), np.int64(3))))
    assert [(one.column, one.samples) for one in report.findings if one.what == "not_finite"] == [("0", (7,))]


def test_pixels_that_were_never_scaled_are_found() -> None:
    assert found([(x * 60 + 128, y) for x, y in rows()]) == {"not_normalised"}


def test_a_constant_column_is_found() -> None:
    assert found([(x, y, np.float32(3)) for x, y in rows()]) == {"constant"}


def test_rare_and_missing_classes_are_found() -> None:
    assert found([(x, np.int64(0 if at else 1)) for at, (x, _) in enumerate(rows())]) == {"unbalanced"}
    assert found([(x, np.int64(y * 2 if y else 0)) for x, y in rows()]) == {"missing_class"}


def test_a_sample_that_comes_twice_is_found() -> None:
    data = rows()
    report = check_data([*data, data[3]])
    assert [one.samples for one in report.findings if one.what == "duplicates"] == [(3, COUNT)]


def test_a_loader_that_starts_from_the_same_seed_each_time_is_found_not_to_shuffle() -> None:
    data = TensorDataset(torch.stack([torch.tensor(x) for x, _ in rows()]), torch.arange(COUNT) % 4)

    class SameSeed(DataLoader):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            torch.manual_seed(0)
            return super().__iter__()

    torch.manual_seed(1)
    assert found(DataLoader(data, batch_size=1, shuffle=True)) == set()
    assert found(SameSeed(data, batch_size=1, shuffle=True)) == {"same_order"}


def test_equal_pipelines_of_two_kinds_have_nothing_apart() -> None:
    tensors = [(torch.tensor(x), torch.tensor(y)) for x, y in rows()]
    assert compare_data(rows(), tensors) == []


def test_the_first_sample_that_differs_is_named() -> None:
    (only,) = compare_data(rows(), changed(5, (np.zeros(8, np.float32), np.int64(1))))
    assert (only.what, only.samples, only.count) == ("other_values", (5,), 1)


def test_the_same_samples_in_another_order_are_told_as_such() -> None:
    assert [one.what for one in compare_data(rows(), rows()[::-1])] == ["other_order"]


def test_another_number_of_samples_is_found() -> None:
    assert [one.what for one in compare_data(rows(), rows()[:-1])] == ["other_length"]


@pytest.mark.mindspore
def test_a_mindspore_dataset_is_compared_with_a_torch_one() -> None:
    from mindspore.dataset import GeneratorDataset

    right = GeneratorDataset(rows(), ["x", "y"], shuffle=False)
    assert compare_data(rows(), right) == []
    assert found(GeneratorDataset(rows(), ["x", "y"], shuffle=False)) == set()


def test_something_that_is_no_pipeline_is_named() -> None:
    with pytest.raises(MigrationError, match="int is no data pipeline"):
        check_data(3)
