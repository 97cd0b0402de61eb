from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from misstep.errors import TrainError
from misstep.train import GeneratorDataset


class Mydata:
    """The data set of the FAQ: five rows that can be read in any order."""

    def __init__(self, rows: int = 5, promised: int = 5) -> None:
        rng = np.random.RandomState(58)
        self.data = rng.random_sample((rows, 2))
        self.label = rng.random_sample((rows, 1))
        self.promised = promised

    def __getitem__(self, index: int) -> Any:
        return self.data[index], self.label[index]

    def __len__(self) -> int:
        return self.promised


def test_a_source_is_read_mapped_and_batched() -> None:
    source = Mydata()
    dataset = GeneratorDataset(source, ["data", "label"], shuffle=False)
    dataset = dataset.map(operations=lambda x: x * 2).batch(2, drop_remainder=True)  # type: ignore[assignment]
    batches = list(dataset)
    assert [part.shape for part in batches[0]] == [(2, 2), (2, 1)]
    assert np.array_equal(np.concatenate([data for data, _ in batches]), source.data[:4] * 2)
    assert np.array_equal(np.concatenate([label for _, label in batches]), source.label[:4])
    assert (len(dataset), dataset.get_dataset_size(), dataset.get_col_names()) == (2, 2, ["data", "label"])


def test_a_source_is_shuffled_unless_told_not_to() -> None:
    np.random.seed(0)
    dataset = GeneratorDataset(list(range(50)), "number")
    first, second = ([int(row[0]) for row in dataset] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second != list(range(50))


def test_a_source_may_be_a_function_or_an_iterable() -> None:
    def numbers() -> Iterator[Any]:
        yield from (np.array(number) for number in range(3))

    by_function = GeneratorDataset(numbers, "number")
    assert [[int(row[0]) for row in by_function] for _ in range(2)] == [[0, 1, 2], [0, 1, 2]]
    assert by_function.get_dataset_size() == 3
    assert [int(row[0]) for row in GeneratorDataset({4: 0, 5: 0}.keys(), "number")] == [4, 5]


def test_rows_come_as_dictionaries_too() -> None:
    rows = list(GeneratorDataset(Mydata(), ["data", "label"], shuffle=False).create_dict_iterator())
    assert [sorted(row) for row in rows] == [["data", "label"]] * 5


def test_repeat_and_the_shuffle_buffer_keep_every_row() -> None:
    dataset = GeneratorDataset(list(range(10)), "number", shuffle=False).shuffle(4).repeat(2)
    assert len(dataset) == 20
    assert sorted(int(row[0]) for row in dataset) == sorted([*range(10), *range(10)])


def test_another_number_of_arrays_than_columns_is_the_documented_error() -> None:
    dataset = GeneratorDataset(Mydata(), ["data", "label", "weight"])
    with pytest.raises(
        TrainError,
        match=r"Invalid Python function, the 'source' of 'GeneratorDataset' should return same number of NumPy arrays "
        r"as specified in column_names, the size of column_names is:3 and number of returned NumPy array is:2",
    ):
        next(iter(dataset))


def test_a_length_that_is_too_long_is_the_documented_error() -> None:
    dataset = GeneratorDataset(Mydata(rows=5, promised=8), ["data", "label"], shuffle=False)
    with pytest.raises(
        TrainError,
        match=r"The actual amount of data read from generator 5 is different from generator\.len 8, "
        r"you should adjust generator\.len to make them match",
    ):
        list(dataset)


def test_rows_of_different_shapes_cannot_be_stacked() -> None:
    dataset = GeneratorDataset([np.zeros(2), np.zeros(3)], "data").batch(2)
    with pytest.raises(TrainError, match=r"column 'data' has rows of different shapes \(\(2,\), \(3,\)\)"):
        list(dataset)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(TrainError, match="GeneratorDataset cannot read a int"):
        list(GeneratorDataset(5, "data"))
    with pytest.raises(TrainError, match="no column 'lable'; did you mean label"):
        GeneratorDataset(Mydata(), ["data", "label"]).map(lambda x: x, "lable")
    with pytest.raises(TrainError, match="cannot shuffle an iterator"):
        GeneratorDataset(iter([1]), "data", shuffle=True)
