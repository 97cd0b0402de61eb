"""Our own run directory, seen through the seam that foreign data uses: the whole tensors it kept, in order.

Checksums are not recomputed here: a comparison reads every byte anyway, and `Run.tensor` or `Run.verify` check them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from misstep.errors import TensorUnavailable
from misstep.store.foreign.source import Entry
from misstep.store.layout import is_run, ranks_in
from misstep.store.pack import StoredTensor
from misstep.store.rank import Rank


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
        self._entries: list[Entry] = []
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
        return self._ranks[number].pack.array(stored, verify=False)

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
            updated=address.role == "param" and bool(address.step),
            key=key,
        )


def open_own_run(path: str | Path) -> RunSource:
    """The tensors a run kept; a run that kept none says how to keep some."""
    source = RunSource(Path(path))
    if not source.entries():
        raise TensorUnavailable(
            f"{source.path.name} kept no whole tensor; record it again with --dump, or dump a step of it while it runs"
        )
    return source
