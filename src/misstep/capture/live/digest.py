"""A step of one rank in a few kilobytes, so that ranks can be compared without sending tensors.

A tensor's statistics are hashed, not its values: two ranks with bit-equal weights have bit-equal statistics, and
thirteen numbers differ when anything does. The price is one vectorised hash over rows that are there anyway.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from misstep.adapters.step.frame import Frame
from misstep.capture.live.debuggee import Debuggee
from misstep.core.address import ROLE_CODES
from misstep.protocol.wire import Digest

MOST_HASHES = 1024
"""Of weights, and of gradients; a larger model folds several tensors into one hash."""

_PARAM, _GRAD, _INPUT = ROLE_CODES["param"], ROLE_CODES["grad"], ROLE_CODES["input"]
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Digests:
    """Makes the digest of the step in the frame."""

    def __init__(self, session: Debuggee) -> None:
        self._session = session
        self._roles = np.zeros(0, np.uint8)
        self._names: dict[bytes, int] = {}

    def of_step(self, frame: Frame | None = None) -> Digest | None:
        """Of the step under way, or of another frame (the initial weights)."""
        frame = self._session.frame if frame is None else frame
        if not len(frame):
            return None
        tensors = np.array(frame.tensors)
        roles = self._roles_of(int(tensors.max()))[tensors]
        summary = frame.summary[: len(frame)]
        weights, gradients = np.flatnonzero(roles == _PARAM), np.flatnonzero(roles == _GRAD)
        inputs = np.flatnonzero(roles == _INPUT)
        return Digest(
            weights=_folded(hashes(summary[weights])),
            gradients=_folded(hashes(summary[gradients])),
            names=self._name_hash(tensors[weights]),
            batch=int(hashes(summary[inputs[:1]])[0]) if inputs.size else 0,
        )

    def _roles_of(self, largest: int) -> Any:
        if largest >= len(self._roles):
            keys = self._session.catalog.graph.tensors
            self._roles = np.array([ROLE_CODES[key.role] for key in keys], np.uint8)
        return self._roles

    def _name_hash(self, tensors: Any) -> int:
        key = tensors.tobytes()
        if key not in self._names:
            if len(self._names) > 64:
                self._names.clear()
            text = "\n".join(str(self._session.catalog.address(int(number))) for number in tensors)
            self._names[key] = zlib.crc32(text.encode())
        return self._names[key]


def hashes(summary: Any) -> Any:
    """A 32-bit hash of each row's statistics."""
    if not len(summary):
        return np.zeros(0, np.uint64)
    words = np.ascontiguousarray(summary).view(np.uint64).reshape(len(summary), -1)
    with np.errstate(over="ignore"):
        powers = _ODD ** np.arange(1, words.shape[1] + 1, dtype=np.uint64)
        mixed = (words * powers).sum(axis=1, dtype=np.uint64) * _ODD
    return mixed >> np.uint64(32)


def _folded(every: Any) -> tuple[int, ...]:
    if len(every) > MOST_HASHES:
        padded = np.zeros(-(-len(every) // MOST_HASHES) * MOST_HASHES, np.uint64)
        padded[: len(every)] = every
        every = np.bitwise_xor.reduce(padded.reshape(-1, MOST_HASHES), axis=0)
    return tuple(every.tolist())
