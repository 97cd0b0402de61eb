"""Runs a taped step again under operator capture, and says whether it came out bit for bit.

    tape ─► put seeds, moving means, attributes back ─► forward and backward again ─► compare losses and gradients
                                                                                  └─► put everything back

It happens between the gradients and the optimizer's call, so weights need no copy. The replay has a flow, a frame and a
listener of its own: the step under way does not notice.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.graph.api import _pynative_executor

from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.replay.state import NetworkState, Randomness, apart, closures
from misstep.adapters.mindspore.replay.tape import Entry, Tape, of_weights, rebuilt
from misstep.adapters.mindspore.seams.operators import OperatorWatch
from misstep.adapters.replaying.protocol import Batch, QuietListener, Replayed
from misstep.adapters.step.flow import Flow
from misstep.adapters.step.frame import Frame
from misstep.core.cells import no_cells
from misstep.errors import ReplayError
from misstep.sentences import replay as texts

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

Swap = Callable[[Any], Any]


@dataclass(slots=True)
class Outcome:
    """What a run of the tape produced."""

    losses: list[Any] = field(default_factory=list)
    gradients: list[list[Any]] = field(default_factory=list)
    """Of each entry, in the order of its weights."""

    def bad(self, entry: int) -> bool:
        return any(not np.isfinite(_values(one)).all() for one in (self.losses[entry], *self.gradients[entry]))


class Player:
    """Calls everything on a tape again."""

    def __init__(self, adapter: MindSporeAdapter, tape: Tape) -> None:
        self.adapter = adapter
        self.tape = tape
        if tape.too_long:
            raise ReplayError(texts.TOO_MUCH.of())
        self.entries = [entry for entry in tape.entries if entry.backward is not None and entry.backward[2] is not None]
        if not self.entries:
            raise ReplayError(texts.NO_EAGER_BACKWARD.of())

    def run(self, *, watch: bool, swap: Swap = lambda tensor: tensor) -> tuple[Outcome, Flow]:
        """The step again; with `watch` every operator is summarised, `swap` may put other samples in."""
        outcome = Outcome()
        with self._undo(), stage(self.adapter, watch=watch) as flow:
            assert self.tape.randomness is not None
            self.tape.randomness.restore()
            for state in self.tape.states.values():
                state.put_in()
            self.tape.playing, self.tape.armed = iter(self.tape.masks), False
            try:
                for entry in self.entries:
                    self._play(entry, swap, outcome, watch)
                for gradients in outcome.gradients:
                    for gradient in gradients:
                        gradient.data_ptr()  # waits until everything has run, before anything is put back
            finally:
                self.tape.playing, self.tape.armed = None, True
            if watch:
                self._see_gradients(flow, outcome)
        return outcome, flow

    def _play(self, entry: Entry, swap: Swap, outcome: Outcome, watch: bool) -> None:
        adapter, seams = self.adapter, self.adapter.seams
        assert entry.backward is not None
        obj, operation, weights, rest = entry.backward
        args, kwargs = rebuilt(entry.args, swap), rebuilt(entry.kwargs, swap)
        rest = rebuilt(rest, swap)
        if watch:
            result = adapter.forward_called(seams.forward, entry.function, args, kwargs)
            gradients = adapter.backward_called(seams.gradient, _pynative_executor, obj, operation, weights, rest)
        else:
            result = seams.forward(entry.function, *args, **kwargs)
            gradients = seams.gradient(_pynative_executor, obj, operation, weights, *rest)
        outcome.losses.append(next(iter(tensors.leaves(result)), None))
        outcome.gradients.append(of_weights(gradients, weights))

    def _see_gradients(self, flow: Flow, outcome: Outcome) -> None:
        """Rows for the gradients of the first entry that went wrong; of the last when none did."""
        number = next((one for one in range(len(self.entries)) if outcome.bad(one)), len(self.entries) - 1)
        backward, names = self.entries[number].backward, self.adapter.names
        assert backward is not None
        weights = [backward[2]] if isinstance(backward[2], ms.Parameter) else list(backward[2])
        flow.gradients(
            (name := names.parameter(weight), weight, gradient, names.users(name))
            for weight, gradient in zip(weights, outcome.gradients[number])
        )

    @contextlib.contextmanager
    def _undo(self) -> Iterator[None]:
        """Whatever the replay changes is put back: seeds, moving means, attributes, what functions close over."""
        randomness = Randomness.now()
        states = [NetworkState.full(state.network) for state in self.tape.states.values()]
        closed = list(closures(entry.function for entry in self.entries))
        for cell, value in closed:
            if isinstance(value, list | dict | set):
                cell.cell_contents = value.copy()
        try:
            with apart(_cells(states)), contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            randomness.restore()
            for cell, value in closed:
                cell.cell_contents = value
            for state in states:
                state.put_buffers()


@contextlib.contextmanager
def stage(adapter: MindSporeAdapter, *, watch: bool = True) -> Iterator[Flow]:
    """Let the adapter look at a replay instead of the step under way."""
    frame = Frame()
    frame.begin(adapter.listener.step)
    before = dict(vars(adapter))
    quiet = QuietListener(adapter.listener, frame)
    if not watch:
        quiet.wants = {}
    flow = Flow(quiet, tensors.memory_of, tensors.glance_at)
    flow.share_names(adapter.flow)
    flow.keeping = True
    operators = OperatorWatch(adapter)
    operators.alone = adapter.rank()[1] > 1
    adapter.replaying(quiet, flow, operators, no_cells())
    adapter.busy = not watch
    try:
        yield flow
    except BaseException:
        _pynative_executor.clear_res()  # a forward cut short would be recorded on
        raise
    finally:
        cost = adapter.cost_ns
        vars(adapter).update(before)
        adapter.cost_ns = cost


class SampleSearch:
    """Runs a step again on parts of its batch."""

    def __init__(self, player: Player, entry: int) -> None:
        self.player = player
        self.entry = entry
        held = [tensor for tensor, _ in player.entries[entry].versions if tensor.ndim]
        sizes = Counter(int(tensor.shape[0]) for tensor in held)
        self.size = int(held[0].shape[0]) if held else 0
        self.tensors = [tensor for tensor in held if sizes and int(tensor.shape[0]) == self.size]

    def batch(self) -> Batch | None:
        if self.size < 2:
            return None
        return Batch(self.size, tuple((f"input.{slot}", tensor) for slot, tensor in enumerate(self.tensors)))

    def bad_with(self, samples: Sequence[int], healthy: Sequence[int]) -> bool:
        fill = [one for one in healthy if one not in samples] or list(samples)
        kept = set(samples)
        order = [one if one in kept else fill[one % len(fill)] for one in range(self.size)]
        chosen = {id(tensor): ms.Tensor(tensor.asnumpy()[order]) for tensor in self.tensors}
        outcome, _ = self.player.run(watch=False, swap=lambda tensor: chosen.get(id(tensor), tensor))
        return outcome.bad(self.entry)


def replay(adapter: MindSporeAdapter) -> Replayed:
    """The step under way, again."""
    began = perf_counter_ns()
    player = Player(adapter, adapter.tape)
    outcome, flow = player.run(watch=True)
    exact = verify(player, outcome)
    bad = next((number for number in range(len(player.entries)) if outcome.bad(number)), -1)
    adapter.search = SampleSearch(player, bad) if bad >= 0 else None
    adapter.replayed = flow
    spent = perf_counter_ns() - began
    adapter.cost_ns += spent
    return Replayed(flow.listener.frame, exact, spent * 1e-9, shared=adapter.rank()[1] > 1)


def verify(player: Player, outcome: Outcome) -> str:
    """'exact', or how far the replay is from the step and why."""
    doubts = texts.STATE_CHANGED.of()
    if player.tape.overwritten or any(
        tensor._version != version for entry in player.entries for tensor, version in entry.versions
    ):
        doubts = texts.OVERWRITTEN.of()
    for entry, loss in zip(player.entries, outcome.losses):
        if entry.loss is not None and not _same_bits(entry.loss, loss):
            return texts.NOT_EXACT.of(why=texts.LOSS_DIFFERS.of(why=doubts))
    compared = changed = 0
    for entry, gradients in zip(player.entries, outcome.gradients):
        for reference, again in zip(entry.gradients, gradients):
            first = reference()
            if first is not None:
                compared += 1
                changed += not _same_bits(first, again)
    if changed:
        return texts.LOSS_ONLY.of(why=texts.GRADIENTS_DIFFER.of(some=changed, all=compared, why=doubts))
    return texts.EXACT.of() if compared else texts.LOSS_ONLY.of(why=texts.NO_GRADIENT_LEFT.of())


def _cells(states: Iterable[NetworkState]) -> list[nn.Cell]:
    return [cell for state in states for _, cell in state.network.cells_and_names()]


def _values(tensor: Any) -> Any:
    return np.zeros(1) if tensor is None else np.asarray(tensors.array(tensor), np.float64)


def _same_bits(a: Any, b: Any) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and tensors.array(a).tobytes() == tensors.array(b).tobytes()
