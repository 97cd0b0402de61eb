"""Runs a taped step again, watching every operator, and says whether it came out bit for bit.

    tape ─► restore random numbers, buffers, attributes ─► call everything again ─► compare losses and gradients
                                                                                └─► put everything back (undo.py)

The replay writes into a frame of its own and talks to a listener that hears nothing, so the step under way does not
notice. It happens before the optimizer moves the weights; therefore no copy of them is needed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from misstep.adapters.pytorch import tensors
from misstep.adapters.pytorch.compiled.calls import same_code_uncompiled
from misstep.adapters.pytorch.names import user_frame
from misstep.adapters.pytorch.replay.entries import Entry, Held, Made, rebuilt
from misstep.adapters.pytorch.replay.samples import SampleSearch
from misstep.adapters.pytorch.replay.stage import stage
from misstep.adapters.pytorch.replay.tape import Tape
from misstep.adapters.pytorch.replay.undo import Undo
from misstep.adapters.pytorch.tensors import leaves
from misstep.adapters.replaying.protocol import Replayed
from misstep.adapters.step.frame import Frame
from misstep.errors import ReplayError
from misstep.sentences import replay as texts
from misstep.sentences.text import clauses

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

Swap = Callable[[Held], torch.Tensor]


@dataclass(slots=True)
class Outcome:
    """What a run of the tape produced."""

    losses: list[torch.Tensor] = field(default_factory=list)
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)
    """By id of the leaf."""
    by_backward: list[bool] = field(default_factory=list)
    """For each backward, whether its loss and the gradients after it were finite."""

    @property
    def finite(self) -> bool:
        return all(self.by_backward)


class Player:
    """Calls everything on a tape again."""

    def __init__(self, adapter: PyTorchAdapter, tape: Tape) -> None:
        self.adapter = adapter
        self.tape = tape
        self.entries = needed_entries(tape)
        self.differentiated = any(entry.kind == "backward" for entry in self.entries)
        if not self.differentiated and not any(entry.kind == "loss" for entry in self.entries):
            raise ReplayError(texts.NO_BACKWARD.of())
        self.modules = _modules_of(self.entries)
        self.compiled = adapter.compiled.ran or any(entry.compiled for entry in self.entries)
        self.leaves = self._leaves()
        self.gradient_rows: dict[int, int] = {}
        """By id of a weight: the row of its gradient in the frame of the last watched run."""
        self.from_outputs = False
        """Backward began at the outputs of the networks."""
        self.unwound = False
        """Random numbers were drawn from a generator whose state at the step's beginning nobody held."""
        self.why: list[str] = []
        """Reasons to doubt that this is the same step, should it come out otherwise."""
        self._find_doubts()
        self.hooks_move_weights = any(getattr(leaf, "_post_accumulate_grad_hooks", None) for leaf in self.leaves)
        self.distributed = any(_is_distributed(entry.call) for entry in self.entries if entry.kind == "module")

    def run(self, *, watch: bool, swap: Swap | None = None) -> tuple[Outcome, Frame]:
        """The step again. With `watch` every operator is summarised; `swap` may put other samples in."""
        outcome = Outcome()
        adapter = self.adapter
        modules = [part for module in self.modules for part in module.modules()]
        outer = user_frame(sys._getframe())
        undo = Undo(modules, self.leaves, _functions_of(self.entries))
        with undo, stage(adapter, undo, outer, watch=watch) as frame, torch.enable_grad(), self._uncompiled():
            if self.tape.threads:
                torch.set_num_threads(self.tape.threads)
            if self.tape.randomness is not None:
                self.tape.randomness.restore()
            values: dict[Made, torch.Tensor] = {}
            with _Autocast() as autocast:
                for entry in self.entries:
                    autocast.be(entry.autocast)
                    self._play(entry, values, swap, outcome)
            outcome.gradients = {id(leaf): leaf.grad for leaf in self.leaves if leaf.grad is not None}
            if watch:
                self._see_gradients()
                self.gradient_rows = dict(adapter.gradient_rows)
        held = {id(one[2]) for entry in self.entries if entry.state is not None for one in entry.state.attributes}
        self.unwound = any(id(generator) not in held for generator in undo.drew)
        return outcome, frame

    # ── one entry ─────────────────────────────────────────────────────────────────────────────────────────────

    def _play(self, entry: Entry, values: dict[Made, torch.Tensor], swap: Swap | None, outcome: Outcome) -> None:
        adapter = self.adapter
        if entry.state is not None:
            with adapter.quietly():
                entry.state.put_in()
        if entry.random is not None:
            torch.set_rng_state(entry.random)
        args = _live(entry.args, values, swap)
        kwargs = _live(entry.kwargs, values, swap)
        adapter.stand_in = entry.line
        if entry.kind == "backward":
            self._backward(entry, args, kwargs, values, outcome)
            return
        if entry.kind == "loss":  # the script left the step with it
            outcome.losses.append(args[0].detach())
            adapter.loss_row(args[0], len(outcome.losses))
            outcome.by_backward.append(not tensors.nonfinite(outcome.losses[-1:]))
            return
        if entry.stale:
            adapter.operators.forget([one for ref in entry.writes if (one := ref()) is not None])
        with torch.set_grad_enabled(entry.grad):
            output = (_local(entry.call) if entry.kind == "module" else entry.call)(*args, **kwargs)
        if hasattr(output, "__next__"):
            output = list(output)
        for place, tensor in enumerate(leaves(output)):
            values[Made(entry.serial, place)] = tensor

    def _backward(
        self, entry: Entry, args: Any, kwargs: Any, values: dict[Made, torch.Tensor], outcome: Outcome
    ) -> None:
        adapter = self.adapter
        losses = list(leaves(args[0]))
        if not entry.uses:
            self._backward_from_outputs(entry, values, outcome)
            return
        for loss in losses:
            outcome.losses.append(loss.detach())
            adapter.loss_row(loss, len(outcome.losses))
        adapter.in_backward = True
        try:
            if (self.hooks_move_weights or self.distributed) and not kwargs.get("inputs"):
                self._backward_without_hooks(losses, args, kwargs)
            else:
                adapter.steps.plain_backward(*args, **kwargs)
        finally:
            adapter.in_backward = False
        gradients = [leaf.grad for leaf in self.leaves if leaf.grad is not None]
        outcome.by_backward.append(not tensors.nonfinite([*outcome.losses[-len(losses) :], *gradients]))

    def _backward_from_outputs(self, entry: Entry, values: dict[Made, torch.Tensor], outcome: Outcome) -> None:
        """The loss cannot be run again: begin at the outputs of the networks, with the gradients that arrived there."""
        adapter = self.adapter
        ends = [
            (values[Made(one.serial, place)], gradient)
            for one in self.entries
            for place, gradient in one.arrived.items()
            if one.serial < entry.serial and Made(one.serial, place) in values
        ]
        if not ends and self.tape.compiled:
            raise ReplayError(texts.ONE_COMPILED.of())
        if not ends:
            raise ReplayError(texts.LOSS_ELSEWHERE.of())
        if not tensors.nonfinite([out.detach() for out, _ in ends]) and tensors.nonfinite([one for _, one in ends]):
            raise ReplayError(texts.AFTER_OUTPUT.of())
        self.from_outputs = True
        outcome.losses.extend(entry.losses)
        for slot, (out, gradient) in enumerate(ends):
            adapter.operators.came_from(gradient, out, adapter.catalog.node("loss", "loss", "Loss", phase="loss"), slot)
        adapter.in_backward = True
        try:
            adapter.steps.plain_backward([out for out, _ in ends], [gradient for _, gradient in ends])
        finally:
            adapter.in_backward = False
        gradients = [leaf.grad for leaf in self.leaves if leaf.grad is not None]
        outcome.by_backward.append(not tensors.nonfinite(gradients))

    def _backward_without_hooks(self, losses: list[torch.Tensor], args: Any, kwargs: Any) -> None:
        """Hooks on leaves may step an optimizer or talk to other ranks; autograd.grad fires none of them."""
        given = {name: kwargs[name] for name in ("retain_graph", "create_graph") if name in kwargs}
        weights = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
        grads = torch.autograd.grad(losses, self.leaves, weights, allow_unused=True, **given)
        with torch.no_grad():
            for leaf, gradient in zip(self.leaves, grads):
                if gradient is not None:
                    leaf.grad = gradient if leaf.grad is None else leaf.grad.add_(gradient)

    def _uncompiled(self) -> Any:
        return same_code_uncompiled() if self.compiled else contextlib.nullcontext()

    def _see_gradients(self) -> None:
        adapter = self.adapter
        known = {id(weight) for weight in adapter.all_weights()}
        weights = [leaf for leaf in self.leaves if leaf.grad is not None and id(leaf) in known]
        with adapter.quietly():
            adapter.parameter_rows("grad", weights, [leaf.grad for leaf in weights if leaf.grad is not None])
            adapter.seer.fetch()

    # ── what is on the tape ───────────────────────────────────────────────────────────────────────────────────

    def _leaves(self) -> list[torch.Tensor]:
        found: dict[int, torch.Tensor] = {}
        for module in self.modules:
            found.update((id(parameter), parameter) for parameter in module.parameters() if parameter.requires_grad)
        for held in self.tape.held():
            if held.tensor.requires_grad and held.tensor.is_leaf and not held.foreign:
                found[id(held.tensor)] = held.tensor
        return list(found.values())

    def _find_doubts(self) -> None:
        overwritten = self.tape.overwritten()
        if overwritten:
            self.why.append(texts.OVERWRITTEN.of())
        if self.tape.foreign:
            self.why.append(texts.LOSS_BEFORE.of())
        if self.compiled:
            self.why.append(texts.WITHOUT_COMPILER.of())


def replay(adapter: PyTorchAdapter) -> Replayed:
    """The step under way, again."""
    began = perf_counter_ns()
    player = Player(adapter, adapter.tape)
    mine = {id(leaf): leaf.grad for leaf in player.leaves}
    outcome, frame = player.run(watch=True)
    exact = verify(player, outcome, mine)
    first_bad = next((number for number, finite in enumerate(outcome.by_backward) if not finite), -1)
    adapter.search = SampleSearch(player, first_bad) if first_bad >= 0 else None
    spent = perf_counter_ns() - began
    adapter.cost_ns += spent
    return Replayed(frame, exact, spent * 1e-9, player.gradient_rows, shared=player.distributed)


def verify(player: Player, outcome: Outcome, gradients: dict[int, torch.Tensor | None]) -> str:
    """'exact', or how far the replay is from the step and why."""
    if player.unwound:
        return texts.NOT_EXACT.of(why=texts.FOREIGN_GENERATOR.of())
    doubts = clauses(player.why) if player.why else None
    if (player.tape.overwritten() or player.compiled) and not outcome.finite:
        return texts.NOT_EXACT.of(why=doubts or texts.STATE_CHANGED)  # NaN equals NaN, whatever went in
    wanted = [loss for entry in player.entries for loss in entry.losses]
    if len(wanted) != len(outcome.losses) or not all(same_bits(a, b) for a, b in zip(wanted, outcome.losses)):
        return texts.NOT_EXACT.of(why=texts.LOSS_DIFFERS.of(why=doubts or texts.STATE_CHANGED))
    if not player.differentiated:
        return texts.EXACT.of()
    raw = _right_after_backward(player.entries)
    changed = 0
    # Weights of another optimizer may still hold gradients of an earlier step.
    compared = [leaf for leaf in player.leaves if not player.adapter.moving or id(leaf) in player.adapter.moving]
    for leaf in compared:
        again, first = outcome.gradients.get(id(leaf)), gradients.get(id(leaf))
        if again is None or first is None:
            changed += (again is None) != (first is None)
        elif not same_bits(again, first) and raw.get(id(leaf)) != tensors.digest(again):
            changed += not _same_values(again, first)
    if not changed and player.from_outputs:
        return texts.NETWORK_ONLY.of()
    if not changed:
        return texts.EXACT.of()
    if player.distributed:
        return texts.LOSS_ONLY.of(why=texts.AVERAGED.of())
    why = texts.GRADIENTS_DIFFER.of(some=changed, all=len(compared), why=doubts or texts.CHANGED_AFTER)
    return texts.LOSS_ONLY.of(why=why)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes: the same NaN, the same zero."""
    return a.shape == b.shape and a.dtype == b.dtype and tensors.digest(a) == tensors.digest(b)


def _same_values(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal as numbers: a gradient that was added to zeros (`set_to_none=False`) has +0 where it had -0."""
    if a.shape != b.shape or a.dtype != b.dtype or a.layout is not torch.strided or b.layout is not torch.strided:
        return False
    return bool(torch.allclose(a, b, rtol=0.0, atol=0.0, equal_nan=True))


def _right_after_backward(entries: list[Entry]) -> dict[int, int]:
    """Digests of gradients before anybody clipped them, where they were kept: of the last backward."""
    last = next((entry for entry in reversed(entries) if entry.kind == "backward"), None)
    found = {}
    for ref, _, digest in () if last is None or last.gradients is None else last.gradients:
        leaf = ref()
        if leaf is not None:
            found[id(leaf)] = digest
    return found


def needed_entries(tape: Tape) -> list[Entry]:
    """The entries of this window, and those carried over whose results it uses."""
    needed = {serial for entry in tape.entries for serial in entry.uses}
    kept = []
    for entry in reversed(tape.carried):
        if entry.serial in needed:
            kept.append(entry)
            needed.update(entry.uses)
    return [*kept[::-1], *tape.entries]


def _modules_of(entries: list[Entry]) -> list[nn.Module]:
    called = [entry.call for entry in entries if entry.kind == "module"]
    called += [network for entry in entries for network in entry.networks]
    return list({id(one): one for one in called}.values())


def _functions_of(entries: list[Entry]) -> list[type]:
    """The autograd functions of the user's that were called between networks and backward."""
    owners = (getattr(entry.call, "__self__", None) for entry in entries if entry.kind == "function")
    return [owner for owner in owners if isinstance(owner, type) and issubclass(owner, torch.autograd.Function)]


def _is_distributed(module: Any) -> bool:
    return isinstance(module, nn.parallel.DistributedDataParallel)


def _local(module: Any) -> Any:
    """The network itself, without what talks to other ranks or compiles it."""
    while True:
        if _is_distributed(module):
            module = module.module
        elif isinstance(getattr(module, "_orig_mod", None), nn.Module):
            module = module._orig_mod
        else:
            return module


def _live(value: Any, values: dict[Made, torch.Tensor], swap: Swap | None) -> Any:
    if isinstance(value, Made):
        if value not in values:
            raise ReplayError(texts.NOT_KEPT_CALL.of())
        return values[value]
    if isinstance(value, Held):
        tensor = value.tensor if swap is None else swap(value)
        # Its history is not ours to run again: it stands at the edge, as a leaf.
        return tensor.detach().requires_grad_(tensor.is_floating_point()) if value.foreign else tensor
    if value is None or isinstance(value, str | int | float):
        return value
    return rebuilt(value, lambda item: _live(item, values, swap))


class _Autocast:
    """One autocast context for as long as entries agree on it: within one, casts of weights are shared."""

    def __init__(self) -> None:
        self._now: tuple[tuple[str, torch.dtype], ...] = ()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> _Autocast:
        # Whatever context the optimizer's step was called in is not the one the forward had.
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                self._stack.enter_context(torch.autocast(device, enabled=False))
        self._inner = self._stack.enter_context(contextlib.ExitStack())
        return self

    def be(self, wanted: tuple[tuple[str, torch.dtype], ...]) -> None:
        if wanted == self._now:
            return
        self._inner.close()
        for device, dtype in wanted:
            self._inner.enter_context(torch.autocast(device, dtype=dtype))
        self._now = wanted

    def __exit__(self, *facts: Any) -> None:
        self._stack.close()
