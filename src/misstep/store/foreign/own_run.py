"""Our own run directory, seen through the seam that foreign data uses: the whole tensors it kept, in order.

Each tensor is checked when it is first read: after a loss of power a pack may end in zeros, which are no values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.core.address import Address
from misstep.core.stats import TensorStats
from misstep.errors import TensorUnavailable
from misstep.store.foreign.source import Entry
from misstep.store.layout import is_run, ranks_in
from misstep.store.pack import StoredTensor
from misstep.store.reading.rank import Rank


def looks_like_run(path: Path) -> bool:
    return path.is_dir() and is_run(path)


class RunSource:
    """The whole tensors of a run, all steps and ranks.

    >>> RunSource(Path("missteps/try-7")).entries()[0].step
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._ranks: dict[int, Rank] = {}
        self._stored: dict[str, tuple[int, StoredTensor]] = {}
        self._sound: set[str] = set()
        self._entries: list[Entry] = []
        self._rows: dict[tuple[int, int], dict[Address, TensorStats]] = {}
        for number in ranks_in(self.path):
            rank = self._ranks[number] = Rank(self.path, number)
            rank.refresh()
            for order, stored in enumerate(rank.stored_tensors()):
                self._entries.append(self._entry(rank, stored, order, number))

    @property
    def label(self) -> str:
        return str(self.path)

    def entries(self) -> list[Entry]:
        return self._entries

    def array(self, entry: Entry) -> NDArray[Any]:
        found = self._stored.get(entry.key)
        if found is None:
            raise TensorUnavailable(f"{self.path.name} kept no {entry}", address=str(entry.address))
        number, stored = found
        array = self._ranks[number].pack.array(stored, verify=entry.key not in self._sound)
        self._sound.add(entry.key)
        return array

    def stats(self, entry: Entry) -> TensorStats | None:
        """What the run recorded of the tensor: of all of it, though the pack may hold a sample."""
        number, step = entry.rank or 0, entry.step
        if step is None:
            return None
        if (number, step) not in self._rows:
            rank = self._ranks[number]
            self._rows[number, step] = dict(rank.named_rows(rank.stats.of_step(step)))
        return self._rows[number, step].get(entry.address)

    def memory(self, entry: Entry) -> Hashable:
        number, stored = self._stored[entry.key]
        return number, stored.offset, stored.bytes, stored.shape, stored.dtype

    def settings(self) -> dict[str, dict[str, str]]:
        """By the name of a node: how it was set up."""
        return _settings(self._ranks.values())

    def damage(self) -> list[str]:
        """What of the pack and its index could not be read."""
        return [sentence for rank in self._ranks.values() for sentence in rank.pack.damage(alive=False)]

    def _entry(self, rank: Rank, stored: StoredTensor, order: int, number: int) -> Entry:
        address = stored.address
        node = rank.graph.node(address.node)
        key = f"{number}/{order}"
        self._stored[key] = number, stored
        return Entry(
            name=address.node,
            role=address.role,
            slot=address.slot,
            node_type=node.type if node is not None else "",
            shape=stored.shape,
            dtype=stored.dtype,
            order=order,
            source_line=str(node.source) if node is not None and node.source is not None else "",
            step=address.step,
            rank=number,
            call=address.call,
            updated=_left_behind(address),
            key=key,
        )


class RowSource:
    """The tensors a run recorded the statistics of, whether it kept their values or not."""

    def __init__(self, path: Path, chosen: Callable[[Address, str], bool] = lambda address, kind: True) -> None:
        self.path = Path(path)
        self._found: dict[str, tuple[Entry, TensorStats]] = {}
        self._ranks: list[Rank] = []
        for number in ranks_in(self.path):
            rank = Rank(self.path, number)
            rank.refresh()
            self._ranks.append(rank)
            for step in rank.stats.kept_steps():
                rows = rank.stats.of_step(int(step))
                for address, stats in rank.named_rows(rows[np.argsort(rows["order"], kind="stable")]):
                    node = rank.graph.node(address.node)
                    kind = node.type if node is not None else ""
                    if chosen(address, kind):
                        self._add(address, stats, kind)

    @property
    def label(self) -> str:
        return str(self.path)

    def entries(self) -> list[Entry]:
        return [entry for entry, _ in self._found.values()]

    def array(self, entry: Entry) -> NDArray[Any]:
        raise TensorUnavailable(f"only the statistics of {entry} were kept", address=str(entry.address))

    def stats(self, entry: Entry) -> TensorStats | None:
        return self._found[entry.key][1]

    def memory(self, entry: Entry) -> Hashable:
        return None

    def settings(self) -> dict[str, dict[str, str]]:
        """By the name of a node: how it was set up."""
        return _settings(self._ranks)

    def _add(self, address: Address, stats: TensorStats, kind: str) -> None:
        entry = Entry(
            name=address.node,
            role=address.role,
            slot=address.slot,
            node_type=kind,
            shape=stats.shape,
            dtype=stats.dtype,
            order=len(self._found),
            step=address.step,
            rank=address.rank,
            call=address.call,
            updated=_left_behind(address),
            key=str(len(self._found)),
        )
        self._found[entry.key] = entry, stats


def open_own_run(path: str | Path, *, statistics: bool = False) -> RunSource | RowSource:
    """The tensors a run kept; a run that kept none says how to keep some, or gives its statistics where those do."""
    source = RunSource(Path(path))
    if source.entries():
        return source
    rows = RowSource(Path(path)) if statistics else None
    if rows is not None and rows.entries():
        return rows
    damage = source.damage()
    if damage:
        raise TensorUnavailable(f"no whole tensor of {source.path.name} can be read: {'; '.join(damage)}")
    raise TensorUnavailable(
        f"{source.path.name} kept no whole tensor; record it again with --dump, or dump a step of it while it runs"
    )


def _left_behind(address: Address) -> bool:
    """Weights and buffers are recorded as the step left them; those of step 0 are what the training began with."""
    return address.role in ("param", "buffer") and bool(address.step)


def _settings(ranks: Iterable[Rank]) -> dict[str, dict[str, str]]:
    return {node.name: node.settings for rank in ranks for node in rank.graph.nodes if node.settings}
