"""Batches from anything that gives batches: a list, a DataLoader, a MindSpore dataset, a generator.

`Batches` looks once at what it was given, then only iterates. It says clearly what is wrong with a dataset that
runs dry, or that gives another number of batches than it promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from misstep.errors import TrainError
from misstep.train.values import framework_of


class Batches:
    """A source of batches, epoch after epoch."""

    def __init__(self, dataset: Any, *, epochs: int = 1, role: str = "train_dataset") -> None:
        self.dataset = dataset
        self.role = role
        self.size = _promised_size(dataset)
        self.columns = _column_names(dataset)
        self._source: Iterable[Any]
        if hasattr(dataset, "create_tuple_iterator"):
            # One iterator for all epochs: MindSpore builds its pipeline anew for every iterator.
            self._source = dataset.create_tuple_iterator(num_epochs=epochs)
        elif isinstance(dataset, Iterable) or hasattr(dataset, "__getitem__"):
            self._source = dataset
        else:
            raise TrainError(
                f"{role} is a {type(dataset).__name__}, which cannot be iterated; "
                "pass a list of batches, a DataLoader, a dataset or a generator"
            )

    def __iter__(self) -> Iterator[Any]:
        return iter(self._source)

    def check_columns(self) -> None:
        """Raises when the dataset names its columns and they are not data and label."""
        if self.columns and len(self.columns) != 2:
            raise wrong_columns(len(self.columns), self.columns)

    def check_epoch(self, given: int, *, epoch: int) -> None:
        """Raises when a finished epoch gave no batch, or fewer than were promised."""
        if given == 0:
            cause = (
                "it is an iterator and was used up by an earlier epoch; pass a list, a dataset or a DataLoader"
                if epoch > 1 and iter(self._source) is self._source
                else "it is empty, or drop_last removed its only batch"
            )
            raise TrainError(f"{self.role} gave no batch in epoch {epoch}: {cause}")
        if self.size is not None and given < self.size:
            raise TrainError(self._lie(given, epoch=epoch))

    def check_step(self, given: int, *, epoch: int) -> None:
        """Raises when there are more batches than promised."""
        if self.size is not None and given > self.size:
            raise TrainError(self._lie(f"more than {self.size}", epoch=epoch))

    def _lie(self, given: int | str, *, epoch: int) -> str:
        return (
            f"{self.role} says it has {self.size} batches, but epoch {epoch} gave {given}; "
            f"make {type(self.dataset).__name__}.__len__ return the real number, or leave it out"
        )


def columns_of(batch: Any) -> tuple[Any, ...]:
    """A batch as a tuple of columns: pairs stay, dictionaries give their values, a lone tensor is one column."""
    if type(batch) is tuple:
        return batch
    if isinstance(batch, list | tuple):
        return tuple(batch)
    if isinstance(batch, Mapping):
        return tuple(batch.values())
    return (batch,)


def wrong_columns(count: int, names: Sequence[str]) -> TrainError:
    """The error for columns that a loss function cannot take."""
    listed = f" ({', '.join(names)})" if names else ""
    noun = "column" if count == 1 else "columns"
    return TrainError(
        f"the dataset gives {count} {noun}{listed}, but loss_fn needs two: the data and the label; "
        "drop the others, or compute the loss inside the network and pass loss_fn=None"
    )


def data_and_label(batch: Any) -> tuple[Any, Any]:
    """The two columns a loss function takes."""
    columns = columns_of(batch)
    if len(columns) != 2:
        raise wrong_columns(len(columns), [str(name) for name in batch] if isinstance(batch, Mapping) else [])
    return columns[0], columns[1]


def _promised_size(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except TypeError:
        return int(dataset.get_dataset_size()) if framework_of(dataset) == "mindspore" else None


def _column_names(dataset: Any) -> tuple[str, ...]:
    names = getattr(dataset, "get_col_names", None)
    return tuple(names()) if callable(names) else ()
