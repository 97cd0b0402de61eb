"""Checkpoints of one training, in order: which weights never moved from one to the next.

A series is told by names: files beside each other that differ only in numbers (`epoch-001.ckpt`, `epoch-002.ckpt`).
A weight that stays the same to the last bit over all of them was frozen, forgotten by the optimizer, or never reached.
All of them are read for that, so that a large series is read only when somebody insists.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from misstep.errors import TensorUnavailable
from misstep.hub.answers.held.things import Opened, Things
from misstep.protocol.things import CheckpointSeries

MOST = 16
"""Checkpoints read; of a longer series the first, the last, and others evenly between."""
READ_UNASKED_MB = 512
_NUMBER = re.compile(r"\d+")


def series_of(things: Things, name: str, *, insist: bool) -> CheckpointSeries:
    """The series a checkpoint belongs to, and the weights of it that are in all and the same in all."""
    files = {one.name: one.path for one in things.all() if one.kind == "checkpoint"}
    names = _evenly(_together(name, list(files)))
    size = sum(files[one].stat().st_size for one in names)
    read = len(names) > 1 and (insist or size <= READ_UNASKED_MB * 2**20)
    stuck = _unchanged(things, names) if read else ()
    return CheckpointSeries(of=name, names=tuple(names), read=read, bytes=size, unchanged=stuck)


def _unchanged(things: Things, names: Sequence[str]) -> tuple[str, ...]:
    first = things.open(names[0])
    same = {address: _digest(first, address) for address in first.by_address}
    for one in names[1:]:
        other = things.open(one)
        same = {address: digest for address, digest in same.items() if digest and _digest(other, address) == digest}
    return tuple(same)


def _together(name: str, every: Sequence[str]) -> list[str]:
    """Those whose names differ from this one only in their numbers, in the order of these.

    >>> _together("a/epoch-2.pth", ["a/epoch-10.pth", "a/epoch-2.pth", "b/epoch-1.pth"])
    ['a/epoch-2.pth', 'a/epoch-10.pth']
    """
    shape = _NUMBER.sub("#", name)
    alike = [one for one in every if _NUMBER.sub("#", one) == shape]
    return sorted(alike, key=lambda one: [int(number) for number in _NUMBER.findall(one)])


def _evenly(names: list[str]) -> list[str]:
    if len(names) <= MOST:
        return names
    return [names[round(at * (len(names) - 1) / (MOST - 1))] for at in range(MOST)]


def _digest(opened: Opened, address: str) -> bytes:
    """Of the values with their shape; empty for what is not there or cannot be read."""
    entry = opened.by_address.get(address)
    if entry is None:
        return b""
    try:
        values = np.ascontiguousarray(opened.array(entry))
    except TensorUnavailable:
        return b""
    head = f"{values.dtype} {values.shape}".encode()
    return hashlib.blake2b(head + values.tobytes(), digest_size=16).digest()
