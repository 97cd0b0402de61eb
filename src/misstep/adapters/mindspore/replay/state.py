"""The state a network was called with: what a forward reads beside its weights and its batch.

Seeds of MindSpore, numpy and Python, the parameters a forward writes to itself (moving means), and the Python
attributes it changes (a counter, a carried state). Which ones change is learned from the first calls, so that a frozen
backbone costs nothing to hold. A compiled optimizer keeps the memory of a parameter: values are written into it, never
put in its place.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import random
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn

from misstep.adapters.mindspore.functions import closed_over
from misstep.adapters.replaying.copies import CONTAINERS, twin_of

seeds: Any = sys.modules["mindspore.common.seed"]
"""By its name in sys.modules: a function of the same name hides the module."""
_LEARNING_CALLS = 3
"""Calls of a network that are held in full before only what changed in them is."""
_MOST_LEARNED_MB = 64
"""Of parameters without gradient that are compared to learn which ones a forward writes."""
_LARGEST_CONTAINER = 10_000
_PLAIN = (int, float, bool, str, bytes, tuple, type(None), ms.Tensor)
_OF_MINDSPORE = frozenset(vars(nn.Cell()))
"""Attributes every cell has; a user's own are all others."""

Attribute = tuple[nn.Cell, str, Any]


@dataclass(frozen=True, slots=True)
class Randomness:
    """Every generator a forward may draw from, but for the masks of dropout, which the tape holds."""

    seed: Any
    kernels: dict[Any, Any]
    python: Any
    numpy: Any

    @classmethod
    def now(cls) -> Randomness:
        state = np.random.get_state(legacy=False)
        return cls(seeds._GLOBAL_SEED, copy.deepcopy(seeds._KERNEL_SEED), random.getstate(), state)

    def plain(self) -> dict[str, Any]:
        """In arrays and numbers alone, for a file that nobody has to trust."""
        version, words, gauss = self.python
        return {
            "seed": self.seed,
            "kernels": [[*key, value] for key, value in self.kernels.items()],
            "python": [version, list(words), gauss],
            "numpy": self.numpy,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Randomness:
        version, words, gauss = plain["python"]
        kernels = {tuple(key): value for *key, value in plain["kernels"]}
        return cls(plain["seed"], kernels, (version, tuple(words), gauss), plain["numpy"])

    def restore(self) -> None:
        seeds._GLOBAL_SEED = self.seed
        seeds._KERNEL_SEED.clear()
        seeds._KERNEL_SEED.update(copy.deepcopy(self.kernels))
        random.setstate(self.python)
        np.random.set_state(self.numpy)


class Copies:
    """What tensors hold at one moment, byte for byte. Taken again of the same ones, it goes into the same memory:
    fresh memory costs more than the copy itself (measured on 128 MB: 103 ms against 46)."""

    def __init__(self, tensors: Sequence[Any] = ()) -> None:
        self.tensors: list[Any] = []
        self.arrays: list[np.ndarray[Any, np.dtype[np.uint8]]] = []
        self._addresses: list[int] = []
        if tensors:
            self.take(tensors)

    def take(self, tensors: Sequence[Any]) -> None:
        # The memory of a view is not as long as its shape says: a gradient that was broadcast has one element.
        tensors = [tensor for tensor in tensors if tensor.is_contiguous()]
        if len(tensors) != len(self.tensors) or any(one is not other for one, other in zip(tensors, self.tensors)):
            self.tensors = tensors
            self.arrays = [np.empty(int(tensor.nbytes), np.uint8) for tensor in tensors]
            self._addresses = [array.ctypes.data for array in self.arrays]
        for tensor, address, array in zip(self.tensors, self._addresses, self.arrays):
            ctypes.memmove(address, tensor.data_ptr(), len(array))

    def put_back(self) -> None:
        for tensor, address, array in zip(self.tensors, self._addresses, self.arrays):
            ctypes.memmove(tensor.data_ptr(), address, len(array))

    def differing(self) -> list[Any]:
        """Tensors that hold something else by now."""
        return [
            tensor
            for tensor, array in zip(self.tensors, self.arrays)
            if ctypes.string_at(tensor.data_ptr(), len(array)) != array.tobytes()
        ]

    def let_go(self) -> None:
        self.tensors, self.arrays, self._addresses = [], [], []


@dataclass(slots=True)
class NetworkState:
    """One network as it was."""

    network: nn.Cell
    buffers: list[tuple[ms.Parameter, Any]] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)

    @classmethod
    def full(cls, network: nn.Cell) -> NetworkState:
        buffers = [(one, one.asnumpy().copy()) for one in network.untrainable_params() if not one.has_init]
        return cls(network, buffers, list(attributes_of(network)))

    def put_in(self) -> None:
        self.put_buffers()
        for cell, name, value in self.attributes:
            vars(cell)[name] = _copy(value)

    def put_buffers(self) -> None:
        for parameter, values in self.buffers:
            parameter.asnumpy()[...] = values


class Networks:
    """Takes the state of networks, and learns what of it changes."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def take(self, network: nn.Cell) -> NetworkState:
        known = self._known.get(id(network))
        if known is None or known.network() is not network:
            known = self._known[id(network)] = _Known(weakref.ref(network))
        known.calls += 1
        if known.calls > _LEARNING_CALLS:
            return NetworkState(
                network,
                [(one, one.asnumpy().copy()) for one in known.buffers],
                [(cell, name, _copy(vars(cell).get(name))) for cell, name in known.attributes],
            )
        size = sum(int(one.nbytes) for one in network.untrainable_params())
        if size > _MOST_LEARNED_MB * 2**20:  # a frozen backbone, which no forward writes to
            return NetworkState(network, [], list(attributes_of(network)))
        return NetworkState.full(network)

    def learn(self, state: NetworkState) -> None:
        """The forward that began with this state is over."""
        known = self._known[id(state.network)]
        if known.calls > _LEARNING_CALLS:
            return
        held = {id(one) for one in known.buffers}
        known.buffers += [
            one for one, values in state.buffers if id(one) not in held and one.asnumpy().tobytes() != values.tobytes()
        ]
        there = {(id(cell), name) for cell, name in known.attributes}
        known.attributes += [
            (cell, name)
            for cell, name, value in state.attributes
            if (id(cell), name) not in there and not _same(vars(cell).get(name), value)
        ]


@dataclass(slots=True)
class _Known:
    network: weakref.ref[nn.Cell]
    calls: int = 0
    buffers: list[ms.Parameter] = field(default_factory=list)
    attributes: list[tuple[nn.Cell, str]] = field(default_factory=list)


@contextlib.contextmanager
def apart(cells: Iterable[nn.Cell]) -> Iterator[None]:
    """Inside, the containers among the attributes of these cells are copies; afterwards every attribute, and every
    container whoever else holds it, is as it was."""
    spaces = [(vars(cell), {name: value for name, value in vars(cell).items() if _of_user(name)}) for cell in cells]
    for space, before in spaces:
        space.update({name: _copy(value) for name, value in before.items() if type(value) in CONTAINERS})
    try:
        yield
    finally:
        for space, before in spaces:
            for name in [name for name in space if _of_user(name) and name not in before]:
                del space[name]
            space.update(before)


def closures(functions: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """(cell, value) of the plain values that these functions close over: a counter, a list of losses."""
    for function in functions:
        for _, cell, value in closed_over(function):
            if type(value) in (*_PLAIN, *CONTAINERS):
                yield cell, value


def attributes_of(network: nn.Cell) -> Iterator[Attribute]:
    for _, cell in network.cells_and_names():
        for name, value in vars(cell).items():
            if _of_user(name) and type(value) in (*_PLAIN, *CONTAINERS):
                yield cell, name, _copy(value)


def _of_user(name: str) -> bool:
    return name not in _OF_MINDSPORE


def _copy(value: Any) -> Any:
    return twin_of(value) if type(value) in CONTAINERS and len(value) <= _LARGEST_CONTAINER else value


def _same(now: Any, before: Any) -> bool:
    if isinstance(now, ms.Tensor) or isinstance(before, ms.Tensor):
        return now is before
    try:
        return type(now) is type(before) and bool(now == before)
    except (ValueError, TypeError):  # a list of tensors has no truth
        return False
