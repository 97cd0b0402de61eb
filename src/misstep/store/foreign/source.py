"""A named, ordered collection of tensors: the one seam between where tensors come from and what is asked of them.

Our own runs, foreign dumps, folders of .npy, checkpoints and plain dictionaries of arrays all are a `TensorSource`;
the comparison, the exporters and the offline debugger know nothing else. Arrays are fetched one by one, memory-mapped
where the format allows, so a dump larger than memory is no special case.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from misstep.core.address import ROLE_CODES, Address, Role
from misstep.core.stats import TensorStats
from misstep.errors import AddressError, TensorUnavailable
from misstep.kernels import summarize
from misstep.store.foreign.elements import name_of

PARAMETER_LEAVES = frozenset(
    [
        "weight",
        "bias",
        "gamma",
        "beta",
        "running_mean",
        "running_var",
        "moving_mean",
        "moving_variance",
        "embedding_table",
        "num_batches_tracked",
        "kernel",
        "scale",
        "in_proj_weight",
        "in_proj_bias",
    ]
)
"""Last words of a name that say: this is a parameter or a buffer, not something computed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a source: what it is called and what it looks like, without its values."""

    name: str
    """The node in the producer's words: `layer1.0.bn1`, `Default/network/fc1-Dense/MatMul-op0`, `fc.weight`."""
    role: Role = "output"
    slot: int = 0
    node_type: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    order: int = 0
    """Position in the execution order; what does not run (parameters) keeps the position of its file."""
    source_line: str = ""
    step: int | None = None
    rank: int | None = None
    call: int = 1
    updated: bool = False
    """A weight as the step left it; what ran in that step used the value of before."""
    key: str = ""
    """Where the source finds the values; only the source reads it."""

    @property
    def address(self) -> Address:
        return Address(self.name, self.role, self.slot, self.step, self.rank, self.call)

    def __str__(self) -> str:
        text = self.name + (f"~{self.call}" if self.call > 1 else "") + f":{self.role}"
        return text + (f".{self.slot}" if self.slot else "")


@runtime_checkable
class TensorSource(Protocol):
    """What a comparison reads from.

    `entries` is cheap and may be called often. `array` may be called from several threads at once; the array may be
    a read-only view of the file. Values that were never kept raise `TensorUnavailable`.
    """

    @property
    def label(self) -> str:
        """What to call it in a sentence: a path, or `left`."""

    def entries(self) -> list[Entry]: ...

    def array(self, entry: Entry) -> NDArray[Any]: ...


class ArraySource:
    """Tensors that are already in memory, in execution order.

    >>> ArraySource({"fc:input": x, "fc.weight:param": w, "fc:output": y})
    >>> ArraySource({"fc.weight": w})            # names without a role: parameters by their last word, else outputs
    """

    def __init__(
        self, arrays: Mapping[str, Any], *, label: str = "arrays", types: Mapping[str, str] | None = None
    ) -> None:
        self._label = label
        self._arrays: dict[str, NDArray[Any]] = {}
        self._entries: list[Entry] = []
        types = types or {}
        for order, (name, value) in enumerate(arrays.items()):
            array = np.asarray(value)
            self._arrays[name] = array
            self._entries.append(_entry_named(name, array, order, types))

    @property
    def label(self) -> str:
        return self._label

    def entries(self) -> list[Entry]:
        return self._entries

    def array(self, entry: Entry) -> NDArray[Any]:
        try:
            return self._arrays[entry.key]
        except KeyError:
            raise TensorUnavailable(f"{self._label} holds no {entry}", address=str(entry)) from None


@runtime_checkable
class Summarised(Protocol):
    """A source that knows the statistics of whole tensors without reading them, and which share their bytes."""

    def stats(self, entry: Entry) -> TensorStats | None: ...

    def memory(self, entry: Entry) -> Hashable:
        """The same for entries that lie in the same place with the same shape; None when it has a place of its own."""


def stats_of(array: NDArray[Any]) -> TensorStats:
    return TensorStats.of(summarize(array), dtype=name_of(array.dtype), shape=array.shape)


class Selected:
    """Some entries of another source: one step of many, one rank of many."""

    def __init__(self, source: TensorSource, entries: Sequence[Entry], *, label: str = "") -> None:
        self._source = source
        self._entries = list(entries)
        self._label = label or source.label

    @property
    def label(self) -> str:
        return self._label

    def entries(self) -> list[Entry]:
        return self._entries

    def array(self, entry: Entry) -> NDArray[Any]:
        return self._source.array(entry)

    def stats(self, entry: Entry) -> TensorStats | None:
        return self._source.stats(entry) if isinstance(self._source, Summarised) else None

    def memory(self, entry: Entry) -> Hashable:
        return self._source.memory(entry) if isinstance(self._source, Summarised) else None

    def settings(self) -> Mapping[str, Mapping[str, str]]:
        known = getattr(self._source, "settings", None)
        return known() if known is not None else {}

    def digest(self, entry: Entry) -> str:
        known = getattr(self._source, "digest", None)
        return known(entry) if known is not None else ""


def select(source: TensorSource, *, step: int | None = None, rank: int | None = None) -> TensorSource:
    """The tensors of one step and rank; what carries no step (parameters of a file) stays.

    Weights are those the step began with, where they were kept.

    >>> select(source, step=120)
    """
    if step is None and rank is None:
        return source
    chosen = [
        entry
        for entry in source.entries()
        if (step is None or entry.step is None or entry.step == step)
        and (rank is None or entry.rank is None or entry.rank == rank)
    ]
    if not chosen:
        held = sorted({entry.step for entry in source.entries() if entry.step is not None})
        raise TensorUnavailable(f"{source.label} holds nothing of step {step}; steps held: {_spans(held)}")
    chosen = _as_the_step_found_them(chosen, source.entries(), step)
    part = (f"@{step}" if step is not None else "") + (f"#{rank}" if rank is not None else "")
    return Selected(source, chosen, label=source.label + part)


def readable(source: TensorSource) -> tuple[TensorSource, list[str]]:
    """The tensors whose values can be read, and a sentence about each of the others: a run may be cut off anywhere."""
    sound: list[Entry] = []
    problems: list[str] = []
    if not isinstance(source, Summarised):  # files of another tool, whole or not there: no need to read them twice
        return source, problems
    for entry in source.entries():
        try:
            source.array(entry)
            sound.append(entry)
        except TensorUnavailable as error:
            problems.append(str(error))
    return (Selected(source, sound) if problems else source), problems


def _as_the_step_found_them(chosen: list[Entry], every: Sequence[Entry], step: int | None) -> list[Entry]:
    """Weights of the step before, where they were kept, in the place of those the step left behind.

    What a step computed follows from the weights it began with; those it ended with are the next step's.
    """
    if step is None or not any(entry.updated for entry in chosen):
        return chosen
    before = {
        (entry.name, entry.slot, entry.rank): entry
        for entry in every
        if entry.role == "param" and entry.step == step - 1
    }
    found = []
    for entry in chosen:
        earlier = before.get((entry.name, entry.slot, entry.rank)) if entry.updated else None
        found.append(entry if earlier is None else replace(earlier, updated=False))
    return found


def address_in(name: str) -> Address | None:
    """The address a name spells, `fc:output.1@7`; None for a name that only has a colon in it."""
    if ":" not in name or name.rsplit(":", 1)[1].split("@")[0].split("#")[0].split(".")[0] not in ROLE_CODES:
        return None
    try:
        return Address.parse(name)
    except AddressError:
        return None


def guess_role(name: str) -> Role:
    """`fc.weight` is a parameter; anything else was computed."""
    leaf = name.rsplit(".", 1)[-1]
    return "param" if leaf in PARAMETER_LEAVES else "output"


def _entry_named(name: str, array: NDArray[Any], order: int, types: Mapping[str, str]) -> Entry:
    address = address_in(name) or Address(name, guess_role(name))
    return Entry(
        name=address.node,
        role=address.role,
        slot=address.slot,
        node_type=types.get(address.node, ""),
        shape=array.shape,
        dtype=name_of(array.dtype),
        order=order,
        step=address.step,
        rank=address.rank,
        call=address.call,
        key=name,
    )


def _spans(steps: Sequence[int]) -> str:
    if not steps:
        return "none"
    shown = ", ".join(map(str, steps[:8]))
    return shown if len(steps) <= 8 else f"{shown}, … {steps[-1]}"
