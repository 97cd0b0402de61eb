"""The whole tensors that go along in a flight record: those a verdict speaks of, then those of hits, then the latest.

A record stays small, so there is room for some of them only. What stays behind is named, for whoever opens the record
on another machine to ask for it on the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from misstep import kernels
from misstep.core.address import Address
from misstep.errors import AddressError, RunError, TensorUnavailable
from misstep.store.codec import decode
from misstep.store.journal import unseal
from misstep.store.layout import RankPaths
from misstep.store.pack import (
    INDEX_MAGIC,
    PACK_MAGIC,
    PackReader,
    Place,
    StoredTensor,
    bytes_of,
    header,
    name_of,
    named_record,
    padding,
)

_NAMED = 8
"""Tensors left behind that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Values:
    """What one rank's whole tensors become in a record: a pack and an index of their own."""

    pack: bytes = b""
    index: bytes = b""
    left_out: tuple[StoredTensor, ...] = ()
    problems: tuple[str, ...] = ()


def values_of(paths: RankPaths, rank: int, journal: Iterable[bytes], *, room: int) -> Values:
    """As much of a rank's whole tensors as there is room for, those its journal speaks of before all others."""
    reader = PackReader(paths.pack, paths.index)
    try:
        reader.refresh()
    except (OSError, RunError) as error:
        return Values(problems=(str(error),))
    if not reader.stored:
        return Values()
    chosen, left_out = _choose(reader.stored, journal, room)
    pack, index = bytearray(header(PACK_MAGIC)), bytearray(header(INDEX_MAGIC))
    places: dict[int, Place] = {}
    problems: list[str] = []
    for stored in chosen:
        try:
            if stored.offset not in places:
                data = bytes_of(reader.array(stored))
                pack += bytes(padding(len(pack)))
                places[stored.offset] = len(pack), len(data), kernels.digest_bytes(data)
                pack += data
        except TensorUnavailable as error:
            problems.append(str(error))
            continue
        index += named_record(name_of(stored.address), places[stored.offset], stored.dtype, stored.shape)
    behind = tuple(replace(stored, address=stored.address.at(rank=rank)) for stored in left_out)
    return Values(bytes(pack) if places else b"", bytes(index) if places else b"", behind, tuple(problems))


def told(left_out: Iterable[StoredTensor]) -> dict[str, Any]:
    """What stayed behind, for the record's manifest; empty when nothing did."""
    every = list(left_out)
    if not every:
        return {}
    once = {(stored.address.rank, stored.offset): stored.bytes for stored in every}
    return {
        "tensors": len(every),
        "bytes": sum(once.values()),
        "first": [str(stored.address) for stored in every[:_NAMED]],
    }


def _choose(
    stored: dict[Address, StoredTensor], journal: Iterable[bytes], room: int
) -> tuple[list[StoredTensor], list[StoredTensor]]:
    """What goes along, in the order it was kept, and what stays behind, what matters most first."""
    weights = {address: place for place, address in enumerate(dict.fromkeys(_spoken_of(journal)))}
    last = len(weights)
    by_weight = sorted(stored, key=lambda address: (weights.get(address, last), -(address.step or 0)))
    offsets: set[int] = set()
    for address in by_weight:
        one = stored[address]
        if one.offset not in offsets and one.bytes <= room:
            offsets.add(one.offset)
            room -= one.bytes
    chosen = [one for one in stored.values() if one.offset in offsets]
    return chosen, [stored[address] for address in by_weight if stored[address].offset not in offsets]


def _spoken_of(journal: Iterable[bytes]) -> list[Address]:
    """The tensors of verdicts, what came out first, and then those of hits."""
    verdicts: list[Address] = []
    hits: list[Address] = []
    for line in journal:
        if line.startswith(b'{"kind":"verdict"'):
            verdict = (unseal(line.rstrip(b"\n")) or {}).get("verdict", {})
            facts = [*verdict.get("outputs", ()), *verdict.get("inputs", ())]
            verdicts += _addresses(fact.get("address") for fact in facts)
        elif line.startswith(b'{"kind":"hit"'):
            hits += _addresses([(unseal(line.rstrip(b"\n")) or {}).get("hit", {}).get("address")])
    return verdicts + hits


def _addresses(plain: Iterable[Any]) -> Iterator[Address]:
    for one in plain:
        try:
            yield replace(decode(Address, one), rank=None)
        except (AddressError, ValueError, TypeError):
            continue
