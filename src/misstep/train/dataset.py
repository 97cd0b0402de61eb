"""GeneratorDataset: numpy batches from Python code, without a framework.

    dataset = GeneratorDataset(source, column_names=["data", "label"]).batch(16, drop_remainder=True)
    for data, label in dataset: ...

The source is anything with `__getitem__` and `__len__`, an iterable, or a function that returns an iterator. Every
operation returns a new dataset, so a pipeline can be used more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from misstep.errors import TrainError, nearest
from misstep.train.values import Array, to_numpy

Row: TypeAlias = tuple[Array, ...]


class Pipeline:
    """Rows of named columns, and ways to make other rows of them."""

    def __init__(self, column_names: Sequence[str], rows: Callable[[], Iterator[Row]], size: int | None) -> None:
        self._columns = tuple(column_names)
        self._rows = rows
        self._size = size

    def __iter__(self) -> Iterator[Row]:
        return self._rows()

    def __len__(self) -> int:
        if self._size is None:
            raise TypeError("this dataset reads from an iterator, so its length is not known before it is read")
        return self._size

    def get_col_names(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def get_dataset_size(self) -> int:
        """How many rows, or batches, an epoch has; a source without a length is read through once to know."""
        if self._size is None:
            self._size = sum(1 for _ in self._rows())
        return self._size

    def create_tuple_iterator(self, num_epochs: int = -1, output_numpy: bool = True) -> Pipeline:
        """Rows as tuples; iterating it again begins the next epoch."""
        return self

    def create_dict_iterator(self, num_epochs: int = -1, output_numpy: bool = True) -> Iterator[dict[str, Array]]:
        """Rows as dictionaries by column name."""
        return (dict(zip(self._columns, row)) for row in self)

    def map(self, operations: Any, input_columns: str | Sequence[str] | None = None) -> Pipeline:
        """Applies one function, or several in turn, to some columns (the first, unless named)."""
        functions = list(operations) if isinstance(operations, list | tuple) else [operations]
        names = [input_columns] if isinstance(input_columns, str) else list(input_columns or self._columns[:1])
        for name in names:
            if name not in self._columns:
                raise TrainError(f"map: no column {name!r}{nearest(name, self._columns)}")
        places = [self._columns.index(name) for name in names]

        def rows() -> Iterator[Row]:
            for row in self._rows():
                values = tuple(row[place] for place in places)
                for function in functions:
                    values = _arrays(function(*values))
                if len(values) != len(places):
                    raise TrainError(f"map: the function took {len(places)} columns and returned {len(values)}")
                changed = dict(zip(places, values))
                yield tuple(changed.get(place, value) for place, value in enumerate(row))

        return Pipeline(self._columns, rows, self._size)

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Pipeline:
        """Rows stacked by `batch_size`; the last, smaller one may be dropped."""
        if batch_size < 1:
            raise TrainError(f"batch_size must be at least 1, got {batch_size}")

        def rows() -> Iterator[Row]:
            waiting: list[Row] = []
            for row in self._rows():
                waiting.append(row)
                if len(waiting) == batch_size:
                    yield self._stacked(waiting)
                    waiting = []
            if waiting and not drop_remainder:
                yield self._stacked(waiting)

        size = self._size
        if size is not None:
            size = size // batch_size if drop_remainder else -(-size // batch_size)
        return Pipeline(self._columns, rows, size)

    def repeat(self, count: int = 1) -> Pipeline:
        """The same rows `count` times in an epoch."""
        size = None if self._size is None else self._size * count
        return Pipeline(self._columns, lambda: chain.from_iterable(self._rows() for _ in range(count)), size)

    def shuffle(self, buffer_size: int) -> Pipeline:
        """Rows in random order, as far as a buffer of that many rows allows."""

        def rows() -> Iterator[Row]:
            waiting: list[Row] = []
            for row in self._rows():
                if len(waiting) < buffer_size:
                    waiting.append(row)
                    continue
                place = np.random.randint(len(waiting))
                yield waiting[place]
                waiting[place] = row
            for place in np.random.permutation(len(waiting)):
                yield waiting[place]

        return Pipeline(self._columns, rows, self._size)

    def _stacked(self, rows: list[Row]) -> Row:
        columns = []
        for name, values in zip(self._columns, zip(*rows)):
            shapes = {value.shape for value in values}
            if len(shapes) > 1:
                raise TrainError(
                    f"batch: column {name!r} has rows of different shapes ({', '.join(map(str, sorted(shapes)))}), "
                    "which cannot be stacked; pad or crop them with map"
                )
            columns.append(np.stack(values))
        return tuple(columns)


class GeneratorDataset(Pipeline):
    """Rows from a Python source, checked against the names of its columns and the length it promises.

    A source with `__getitem__` is read in random order unless `shuffle=False`, as in MindSpore.
    """

    def __init__(
        self,
        source: Any,
        column_names: str | Sequence[str],
        shuffle: bool | None = None,
        *,
        num_samples: int | None = None,
    ) -> None:
        names = [column_names] if isinstance(column_names, str) else list(column_names)
        if not names:
            raise TrainError("GeneratorDataset needs at least one column name")
        self.source = source
        self._shuffled = shuffle
        self._most = num_samples
        size = _length(source)
        super().__init__(names, self._read, size if num_samples is None or size is None else min(size, num_samples))
        if size is None and shuffle:
            raise TrainError("GeneratorDataset cannot shuffle an iterator; give the source __getitem__ and __len__")

    def _read(self) -> Iterator[Row]:
        items = self._by_index() if self._random_access() else iter(self._iterated())
        for number, item in enumerate(items):
            if self._most is not None and number == self._most:
                return
            row = _arrays(item)
            if len(row) != len(self._columns):
                raise TrainError(
                    "Invalid Python function, the 'source' of 'GeneratorDataset' should return same number of NumPy "
                    f"arrays as specified in column_names, the size of column_names is:{len(self._columns)} and number "
                    f"of returned NumPy array is:{len(row)} (row {number}; the columns are {', '.join(self._columns)})"
                )
            yield row

    def _random_access(self) -> bool:
        return hasattr(self.source, "__getitem__") and _length(self.source) is not None

    def _by_index(self) -> Iterator[Any]:
        size = len(self.source)
        order = range(size) if self._shuffled is False else np.random.permutation(size)
        for read, index in enumerate(order):
            try:
                item = self.source[int(index)]
            except IndexError as missing:
                raise TrainError(
                    f"The actual amount of data read from generator {min(read, int(index))} is different from "
                    f"generator.len {size}, you should adjust generator.len to make them match: "
                    f"{type(self.source).__name__}[{int(index)}] raised IndexError ({missing})"
                ) from missing
            yield item

    def _iterated(self) -> Any:
        source = self.source() if callable(self.source) and not hasattr(self.source, "__iter__") else self.source
        try:
            return iter(source)
        except TypeError:
            raise TrainError(
                f"GeneratorDataset cannot read a {type(self.source).__name__}; a source has __getitem__ and __len__, "
                "is iterable, or is a function that returns an iterator"
            ) from None


def _arrays(item: Any) -> Row:
    parts = item if isinstance(item, tuple | list) else (item,)
    return tuple(to_numpy(part) for part in parts)


def _length(source: Any) -> int | None:
    try:
        return len(source)
    except TypeError:
        return None
