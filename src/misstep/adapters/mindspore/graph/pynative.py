"""A compiled step, run in PyNative: cells and operators can be seen there, and the user's lines with them.

    compiled call ─► the same function, arguments and weights in PyNative ─► rows, a verdict, a walk from node to node
                 └─► its loss and gradients ─► do the two modes agree?

The optimizer is not run: what it would be given is kept. Afterwards weights, moving means, attributes and seeds are as
before, and nothing is compiled again: MindSpore keeps its graphs while the mode changes.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter_ns, process_time
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
from mindspore import nn

from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.graph.compare_modes import Modes, compare_modes
from misstep.adapters.mindspore.graph.pynative_mode import pynative
from misstep.adapters.mindspore.replay.state import Copies, Randomness
from misstep.adapters.mindspore.replay.tape import Tape
from misstep.adapters.mindspore.seams.operators import OperatorWatch
from misstep.adapters.replaying.protocol import QuietListener, Replayed
from misstep.adapters.step.flow import Flow
from misstep.adapters.step.frame import Frame
from misstep.core.cells import no_cells
from misstep.errors import ReplayError
from misstep.sentences import replay

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

MOST_HELD_MB = 256
"""Weights kept before a compiled step that updates them itself, should it have to be run again."""
_ALWAYS_HELD_MB = 4
_AFFORDABLE = 0.1
"""Share of a step that keeping more than a few MB may take: a large network on a small batch copies for longer."""
_BYTES_PER_SECOND = 8e9


@dataclass(slots=True)
class CompiledCall:
    """A compiled function as it was called, and how to call it in PyNative."""

    eagerly: Callable[[], Any]
    optimizers: Sequence[nn.Cell]
    weights: Copies | None = None
    """As they were before; None when the call did not move them."""
    not_kept: str = ""
    """Why the weights it moves are not there."""


@dataclass(slots=True)
class EagerStep:
    """What a step in PyNative gave."""

    flow: Flow
    loss: float | None
    gradients: dict[str, Any] = field(default_factory=dict)
    """By weight, as arrays."""
    draws: bool = False
    """Dropout draws other numbers in the other mode."""


def hold_weights(adapter: MindSporeAdapter, call: CompiledCall, others: Iterable[Any] = ()) -> None:
    """Keep the weights that a compiled step is about to move: those of networks and optimizers, and `others`."""
    tape, now = adapter.tape, process_time()
    seconds, tape.last_held = now - tape.last_held, now
    owners = (*adapter.names.networks(), *call.optimizers)
    parameters = {id(one): one for one in chain(others, *(owner.get_parameters() for owner in owners))}
    size = sum(int(one.nbytes) for one in parameters.values())
    share = size / _BYTES_PER_SECOND / seconds if size > _ALWAYS_HELD_MB * 2**20 else 0.0
    if size > MOST_HELD_MB * 2**20:
        call.not_kept = replay.TOO_MANY_WEIGHTS.of(size=size >> 20, most=MOST_HELD_MB)
    elif share > _AFFORDABLE:
        call.not_kept = replay.TOO_DEAR.of(size=size >> 20, share=share)
    else:
        call.weights = tape.weights
        call.weights.take([one for one in parameters.values() if not one.has_init])
        return
    tape.weights.let_go()


def run_eagerly(adapter: MindSporeAdapter, call: CompiledCall, *, stepping: bool = False) -> EagerStep:
    """The step in PyNative, every operator watched."""
    if call.not_kept:
        raise ReplayError(replay.COMPILED_MOVED.of(why=call.not_kept, step=adapter.listener.step))
    given: list[Sequence[Any]] = []
    with _weights_back(call), _stage(adapter, given, stepping) as (flow, tape), pynative():
        call.eagerly()
        entries = [entry for entry in tape.entries if entry.backward is not None]
        if not entries:
            raise ReplayError(replay.NOTHING_IN_PYNATIVE.of())
        last = entries[-1]
        assert last.backward is not None
        weights = [last.backward[2]] if isinstance(last.backward[2], ms.Parameter) else list(last.backward[2] or ())
        gradients = given[-1] if given else tape.results[-1]
        pairs = [(adapter.names.parameter(one), one, gradient) for one, gradient in zip(weights, gradients)]
        flow.gradients((name, one, gradient, adapter.names.users(name)) for name, one, gradient in pairs)
        flow.settle()
        kept = {name: np.array(tensors.array(gradient)) for name, _, gradient in pairs}
        draws = any(isinstance(cell, nn.Dropout) for state in tape.states.values() for cell in _parts(state.network))
        return EagerStep(flow, tensors.number(last.loss), kept, draws)


def replay_compiled(adapter: MindSporeAdapter, call: CompiledCall) -> Replayed:
    """The compiled step under way, again, in PyNative."""
    began = perf_counter_ns()
    eager = run_eagerly(adapter, call)
    adapter.replayed = eager.flow
    modes = compare_modes(adapter, eager)
    spent = perf_counter_ns() - began
    adapter.cost_ns += spent
    return Replayed(eager.flow.listener.frame, replay.IN_PYNATIVE.of(found=modes.text), spent * 1e-9)


def tell_failure(adapter: MindSporeAdapter, error: Exception) -> None:
    """The step under way could not be run in PyNative; it trains all the same."""
    why = str(error) if isinstance(error, ReplayError) else f"{type(error).__name__}: {error}"
    if adapter.on_modes is not None:
        adapter.on_modes(Modes(adapter.listener.step, None, why.partition("\n")[0]))


# ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _stage(adapter: MindSporeAdapter, given: list[Sequence[Any]], stepping: bool) -> Iterator[tuple[Flow, Tape]]:
    """Let the adapter look at the run in PyNative instead of the step under way."""
    frame = Frame()
    frame.begin(adapter.listener.step)
    real, before, randomness = adapter.listener, dict(vars(adapter)), Randomness.now()
    quiet = QuietListener(real, frame)
    under_way = real.frame
    if stepping:
        quiet.stepping, quiet.at_node = True, real.at_node
        real.frame = frame  # whoever stands still at a node looks at what is there now
    flow = Flow(quiet, tensors.memory_of, tensors.glance_at)
    flow.share_names(adapter.flow)
    flow.keeping = True
    tape = Tape()
    tape.arm(True)
    tape.keep_results = True
    operators = OperatorWatch(adapter)
    operators.alone = adapter.rank()[1] > 1
    adapter.replaying(quiet, flow, operators, no_cells())
    adapter.tape, adapter.instead_of_updates, adapter.busy = tape, given, False
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield flow, tape
    finally:
        real.frame = under_way
        cost = adapter.cost_ns
        vars(adapter).update(before)
        adapter.cost_ns = cost
        randomness.restore()
        for state in tape.states.values():
            state.put_in()


@contextlib.contextmanager
def _weights_back(call: CompiledCall) -> Iterator[None]:
    """The weights from before the step, for as long as it is run again."""
    if call.weights is None:
        yield
        return
    now = Copies(call.weights.tensors)
    call.weights.put_back()
    try:
        yield
    finally:
        now.put_back()


def _parts(network: nn.Cell) -> Iterator[nn.Cell]:
    for _, cell in network.cells_and_names():
        yield cell
