"""The tape of a step: what was differentiated with which arguments, so that it can be run again.

Every gradient of an eager training passes two functions of MindSpore: one runs a function forward, the other goes back
through it. Functional loops, TrainOneStepCell and Model.train all do, so an entry is one such pair. The arguments are
held (a batch), gradients only by weak references. The masks dropout drew are held until the update: its generator lives
inside the kernel, where nobody can put it back.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import mindspore as ms
from mindspore import nn

from misstep.adapters.mindspore.functions import closed_over, named_globals
from misstep.adapters.mindspore.replay.state import Copies, Networks, NetworkState, Randomness
from misstep.adapters.mindspore.tensors import leaves

if TYPE_CHECKING:
    from misstep.adapters.mindspore.graph.pynative import CompiledCall

_MOST_ENTRIES = 256
"""An evaluation that differentiates without ever updating makes many."""
_MOST_WAITING = 4
"""Calls of networks held until it is known whether anybody differentiates them: an evaluation makes many."""


@dataclass(frozen=True, slots=True)
class Called:
    """One call of the training loop: a network, a wrapper around one, or a function to differentiate."""

    name: str
    held: list[Any]
    """Its tensors, in order, without weights."""
    outside: list[tuple[str, Any]]
    """Tensors it finds outside of itself, by name."""


@dataclass(slots=True)
class Entry:
    """One function, run forward and back."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    versions: list[tuple[ms.Tensor, int]]
    """Its tensors from outside, with how often they had been written to."""
    backward: tuple[Any, Any, Any, tuple[Any, ...]] | None = None
    """(what was differentiated, the operation, weights, all other arguments) of MindSpore's own call."""
    loss: Any = None
    gradients: list[weakref.ref[ms.Tensor]] = field(default_factory=list)


class Tape:
    """Writes down what the training loop differentiates, while armed."""

    def __init__(self) -> None:
        self.armed = False
        self.networks = Networks()
        self.playing: Iterator[Any] | None = None
        """Masks for a dropout that is run again."""
        self.keep_results = False
        """Hold gradients too: whoever asked for them is not the user."""
        self.compiled: CompiledCall | None = None
        """The compiled code of this step, which can be run in PyNative."""
        self.weights = Copies()
        """Of before a compiled step that moves them itself; memory that is used again at the next."""
        self.last_held = 0.0
        """When the last such step began, in CPU time."""
        self.clear()

    def arm(self, on: bool) -> None:
        if on != self.armed:
            self.armed = on
            self.clear()
            self.weights.let_go()

    def clear(self) -> None:
        """An update is over: nothing before it can be run again."""
        self.entries: list[Entry] = []
        self.calls: list[Called] = []
        self.waiting: deque[Called] = deque(maxlen=_MOST_WAITING)
        """Called, and not differentiated so far."""
        self.states: dict[int, NetworkState] = {}
        self.masks: list[Any] = []
        self.results: list[list[Any]] = []
        self.compiled = None
        self.randomness: Randomness | None = None
        self.overwritten = False
        self.too_long = False

    # ── what is called ────────────────────────────────────────────────────────────────────────────────────────

    def begins(self) -> None:
        """Something is about to run whose gradients may be asked for."""
        if self.armed and self.randomness is None:
            self.randomness = Randomness.now()

    def called(self, name: str, args: Any, kwargs: Any, outside: list[tuple[str, Any]]) -> None:
        if self.armed:
            held = [tensor for tensor in leaves((args, kwargs)) if not isinstance(tensor, ms.Parameter)]
            self.waiting.append(Called(name, held, outside))

    def network_begins(self, network: nn.Cell) -> None:
        if self.armed and id(network) not in self.states:
            self.states[id(network)] = self.networks.take(network)

    def forward(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.armed or self.too_long:
            return
        if len(self.entries) >= _MOST_ENTRIES:
            self.clear()
            self.too_long = True
            return
        self.calls.extend(self.waiting)
        self.waiting.clear()
        versions = [(tensor, tensor._version) for tensor in leaves((args, kwargs))]
        self.entries.append(Entry(function, args, kwargs, versions))

    def backward_begins(self, loss: Any, obj: Any, operation: Any, weights: Any, rest: tuple[Any, ...]) -> None:
        if self.armed and self.entries and self.entries[-1].backward is None:
            entry = self.entries[-1]
            entry.backward = (obj, operation, weights, rest)
            entry.loss = next(iter(leaves(loss)), None)

    def backward_ends(self, gradients: Any) -> None:
        entry = self.entries[-1] if self.armed and self.entries else None
        if entry is not None and entry.backward is not None:
            found = of_weights(gradients, entry.backward[2])
            entry.gradients = [weakref.ref(one) for one in found]
            if self.keep_results:
                self.results.append(found)

    def drew(self, mask: Any) -> None:
        if self.armed and self.randomness is not None:
            self.masks.append(mask)

    def written_to(self, tensor: Any) -> None:
        self.overwritten = self.overwritten or any(
            tensor is held for entry in self.entries for held, _ in entry.versions
        )

    def learn(self) -> None:
        """The step's forwards are over, and so are the writes of theirs."""
        for state in self.states.values():
            self.networks.learn(state)


def of_weights(gradients: Any, weights: Any) -> list[Any]:
    """The gradients of the weights among what backward returned; those of inputs come first."""
    count = 1 if isinstance(weights, ms.Parameter) else len(weights or ())
    return leaves(gradients)[-count:] if count else []


def outside_of(function: Any) -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    """Tensors that a function finds outside of itself, in what it closes over and among globals: a name, the tensor,
    and how to put another one in its place."""
    for name, cell, value in closed_over(function):
        if type(value) is ms.Tensor:
            yield f"free {name}", value, partial(setattr, cell, "cell_contents")
    for name, value in named_globals(function):
        if type(value) is ms.Tensor:
            yield f"global {name}", value, partial(function.__globals__.__setitem__, name)


def rebuilt(value: Any, swap: Callable[[Any], Any]) -> Any:
    """The same nest of tuples, lists and dicts, with every tensor swapped."""
    if isinstance(value, ms.Tensor):
        return swap(value)
    if isinstance(value, tuple | list) and not isinstance(value, ms.ParameterTuple):
        items = [rebuilt(item, swap) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is dict:
        return {name: rebuilt(item, swap) for name, item in value.items()}
    return value


def masked(operator: Any, x: Any, mask: Any) -> Any:
    """What dropout gave with this mask, bit for bit."""
    free = ms.Tensor(mask.asnumpy())  # the mask itself has a history that backward has been through
    return x * (free / operator.keep_prob), free
