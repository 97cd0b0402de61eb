"""The tape of a step: what the training loop itself called, so that it can be called again.

    model(x) ─► loss = f(out, y) ─► loss.backward()          a module call, tail functions, a backward

Only the outermost calls are taped; what happens inside a module happens again when it is called again. Tensors made on
the tape are remembered by where they were made, with weak references, so the user's graph lives as long as before;
tensors from outside (the batch, weights) are held, with their version, which tells whether somebody wrote to them.

The functions between a network's output and backward are heard by an ear of their own: ear.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from misstep.adapters.pytorch.names import user_frame
from misstep.adapters.pytorch.replay.entries import (
    CompiledCall,
    Entry,
    Held,
    Made,
    array_digest,
    autocast,
    catcher,
    held_in,
    reachable,
    rebuilt,
)
from misstep.adapters.pytorch.replay.functions import Ear, writes
from misstep.adapters.pytorch.replay.prelude import Heard, Prelude
from misstep.adapters.pytorch.replay.state import Networks, Randomness
from misstep.adapters.pytorch.tensors import digests, leaves

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

_PRUNE_AT = 512
"""Entries after which those nobody can need are dropped: an evaluation loop that forgot no_grad makes many."""
_MOST_ENTRIES = 50_000
_LEARNING_STEPS = 3
_AS_THEY_ARE: frozenset[type] = frozenset({type(None), bool, int, float, str, torch.dtype, torch.device})


class Tape:
    """Writes down what the training loop calls, while armed."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self.adapter = adapter
        self.armed = False
        self.networks = Networks()
        self.entries: list[Entry] = []
        self.carried: list[Entry] = []
        """Of the update before, where a tensor of it still lives: a GAN's generator runs before its discriminator's
        update and is trained after it."""
        self.randomness: Randomness | None = None
        self.threads = 0
        self.from_step = False
        """Tape from the end of an update on: learned when a loss was made without a network, or of foreign tensors."""
        self.compiled = False
        """The loss came out of a compiled function."""
        self.at_boundary = False
        """Keep the gradients that arrive at the outputs of networks: the loss itself cannot be run again."""
        self.foreign = False
        """A tensor of this step has a history the tape did not see."""
        self.too_long = False
        self.loss: tuple[torch.Tensor, Made] | None = None
        """The last scalar with a history since a backward began: the loss, should the script leave the step with it."""
        self.swap: Callable[[Entry], bool] | None = None
        """Called before an entry is run: a capsule puts its own tensors in, and tells whether it did."""
        self._ear = Ear(self._heard)
        self.prelude = Prelude(self)
        """What is called between an update and the next network."""
        self._serial = 0
        self._by_id: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        self._held: dict[int, Held] = {}
        self._arrays: dict[int, tuple[Any, int]] = {}
        """By id: an array of numpy that was handed to a network, and a digest of it; nobody counts who writes to it."""
        self._uses: list[int] = []
        self._seen: set[int] = set()
        self._prune_at = _PRUNE_AT
        self._clipped = False
        self._gradients_seen = 0
        self._numpy_used = False
        self._windows = 0

    # ── life ──────────────────────────────────────────────────────────────────────────────────────────────────

    def arm(self, on: bool) -> None:
        if on == self.armed:
            return
        self.armed = on
        if on:
            self._ear.open()
        else:
            self.prelude.on = False
            self._ear.close()
            self.clear()

    def clear(self) -> None:
        """A step is over, or nothing of it can be run again."""
        self.entries, self.carried = [], []
        self._forget()

    def _forget(self) -> None:
        self.randomness = self.loss = None
        self.foreign = self.too_long = False
        self._by_id = {}
        self._held = {}
        self._arrays = {}
        self._seen = set()
        self._prune_at = _PRUNE_AT

    def window_ends(self, *, carry: bool) -> None:
        """Weights have moved. With several optimizers, keep the forwards whose results somebody still holds."""
        if carry:
            before = [entry for entry in (*self.carried, *self.entries) if entry.kind != "backward"]
            kept = reachable(before)
            known = {entry.serial for entry in kept}
            by_id = {key: made for key, made in self._by_id.items() if made[1] in known and made[0]() is not None}
            randomness = self.randomness
            self.clear()
            self.carried, self._by_id = kept, by_id
            self.randomness = randomness if kept else None
        else:
            self.clear()
        if self.from_step and self.armed:
            self.begin()
            self.listen()
        elif self.armed:
            self.prelude.begin()

    def begin(self) -> None:
        """The first call of a window: hold what random numbers it will draw."""
        if self.randomness is None or not self.entries:
            self._windows += 1
            self.randomness = Randomness.now(exactly=self._numpy_used or self._windows <= _LEARNING_STEPS)
            self.threads = torch.get_num_threads()

    # ── what is called ────────────────────────────────────────────────────────────────────────────────────────

    def module_begins(self, module: nn.Module, args: Any, kwargs: Any, frame: FrameType | None) -> Entry | None:
        """An outermost module is about to run; None when it is not to be taped."""
        return self._network_entry("module", module, args, kwargs, frame, module)

    def _network_entry(
        self, kind: Any, call: Any, args: Any, kwargs: Any, frame: FrameType | None, root: nn.Module | None
    ) -> Entry | None:
        if not self.armed or self._ear.inside or self.too_long:
            return None
        self.pause()
        self.prelude.end()
        first = not self.entries
        if first:
            self.begin()
        entry = self._entry(kind, call, args, kwargs, frame)
        entry.random = self.randomness.torch if first and self.randomness is not None else torch.get_rng_state()
        entry.origin = self.adapter.loader.last
        if root is not None and id(root) not in self._seen:
            self._seen.add(id(root))
            entry.state = self.networks.take(root, reuse=not self.carried)
        return entry

    def module_ends(self, entry: Entry, output: Any) -> None:
        self._append(entry, output)
        if self.at_boundary:
            for place, tensor in enumerate(leaves(output)):
                if tensor.grad_fn is not None:
                    tensor.grad_fn.register_prehook(catcher(entry.arrived, place, tensor.output_nr))
        self.listen()

    def compiled_begins(self, call: CompiledCall) -> Entry | None:
        """A compiled function is about to be called from the loop; None when it is not to be taped."""
        self.pause()  # Dynamo would compile it anew for whoever stands on its stack of modes
        entry = self._network_entry("function", call.function, call.args, call.kwargs, call.frame, call.root)
        if entry is not None:
            entry.networks, entry.compiled = call.networks, True
            self._ear.inside += 1  # uncompiled pieces of it are not the loop's
        return entry

    def compiled_ends(self, entry: Entry | None, output: Any, *, failed: bool) -> None:
        if entry is None:
            return
        self._ear.inside -= 1
        if not failed:
            self._append(entry, output)
        self.listen()

    def took_place(self, heard: Heard) -> None:
        """A call outside of steps belongs to this one: it made something bad of finite inputs, or follows from that."""
        entry = self._entry("module" if heard.is_network else "function", heard.call, heard.args, heard.kwargs, None)
        entry.line, entry.grad, entry.stale = heard.line, heard.grad, bool(heard.written)
        entry.writes = [weakref.ref(one if one._base is None else one._base) for one in heard.written]
        self._append(entry, heard.output)

    def computed(self, call: Any, args: Any, kwargs: dict[str, Any], result: Any, loss: torch.Tensor) -> None:
        """A call that gave a loss and its gradients at once, and can be made again."""
        self.pause()
        self.prelude.end()
        if not self.entries:
            self.begin()
        entry = self._entry("function", call, args, kwargs, None)
        self._append(entry, result)
        place = next(place for place, tensor in enumerate(leaves(result)) if tensor is loss)
        self.loss = (loss, Made(entry.serial, place))
        self.leave()

    def listen(self) -> None:
        """Hear the functions called from here on."""
        if self.armed and not self.too_long:
            self._ear.listen(always=self.prelude.on)

    def deaf(self) -> Any:
        """Hear nothing of what is called in here."""
        return self._ear.deaf()

    def pause(self) -> None:
        """Hear nothing."""
        self._ear.pause()

    def _heard(self, function: Any, args: Any, kwargs: dict[str, Any], frame: FrameType | None) -> Any:
        if self.adapter.quietly().depth:
            return function(*args, **kwargs)  # of our own
        by_hand = self.adapter.steps.by_hand
        if by_hand.pending and by_hand.reads_a_weight(args):
            with self._ear.deaf():
                self.adapter.guarded("when a step by hand ends", by_hand.close)
        if self.prelude.on:
            return self.prelude.heard(function, args, kwargs, frame)
        if len(self.entries) >= self._prune_at:
            self._prune()
        return self.function(function, args, kwargs, frame)

    def function(self, function: Any, args: Any, kwargs: dict[str, Any], frame: FrameType | None) -> Any:
        """A torch function the loop calls between networks and backward."""
        entry = self._entry("function", function, args, kwargs, frame)
        if writes(function, kwargs):
            target = kwargs.get("out", args[0] if args else None)
            entry.writes = [weakref.ref(t if t._base is None else t._base) for t in leaves(target)]
        if self.swap is not None:
            args, kwargs = self.swapped(entry, args, kwargs)
        with self._ear.deaf():
            output = function(*args, **kwargs)
        if hasattr(output, "__next__"):  # iter(tensor): its elements are tensors of the tape
            made = list(output)
            self._append(entry, made)
            return iter(made)
        if entry.writes or next(leaves(output), None) is not None:
            self._append(entry, output)
        return output

    def backward_begins(self, tensors: Any, args: Any, kwargs: dict[str, Any], frame: FrameType | None) -> None:
        if not self.armed:
            return
        self.pause()
        self.prelude.end()
        self.loss = None
        entry = self._entry("backward", None, (tensors, *args), kwargs, frame)
        entry.losses = tuple(loss.detach() for loss in leaves(tensors))
        if not self.entries or self.foreign or not entry.uses:
            # Its history began before the tape did; from the next step on the tape begins with the step. When that
            # was not enough, the loss is made where no tape listens (a scripted function): catch what comes back.
            self.at_boundary = self.at_boundary or (self.from_step and not entry.uses)
            # A compiled function is one piece to us, and compiled anew when somebody begins to listen around it.
            self.compiled = any("CompiledFunction" in str(loss.grad_fn) for loss in leaves(tensors))
            self.from_step = self.from_step or not self.compiled
        self._append(entry, None)
        for earlier in self.entries:
            if earlier.state is not None:
                self.networks.learn(earlier.state)
        if self.randomness is not None and not self._numpy_used:
            self._numpy_used = self.randomness.numpy_drawn()

    def leave(self) -> torch.Tensor | None:
        """No backward comes any more: end the tape with the loss as it was computed."""
        if self.loss is None:
            return None
        (loss, made), self.loss = self.loss, None
        self.pause()
        self._serial += 1
        entry = Entry(self._serial, "loss", None, (made,), {}, None, autocast(), [made.entry])
        entry.losses = (loss,)
        self.entries.append(entry)
        return loss

    def backward_ends(self) -> None:
        """Gradients are as backward left them; whoever clips them does it after this.

        Their digests are taken only once it is known that somebody does.
        """
        if not self.armed or not self.entries or (self._gradients_seen >= _LEARNING_STEPS and not self._clipped):
            return
        every = {id(weight): weight for weight in self.adapter.all_weights() if weight.grad is not None}
        weights = list(every.values())
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        found = digests(gradients) if self._clipped else [0] * len(gradients)
        self.entries[-1].gradients = [
            (weakref.ref(weight), gradient._version, digest)
            for weight, gradient, digest in zip(weights, gradients, found)
        ]

    def gradients_ready(self) -> None:
        """The update comes next: learn whether gradients were changed since backward."""
        if not self.armed or self._clipped or self._gradients_seen >= _LEARNING_STEPS or not self.entries:
            return
        self._gradients_seen += 1
        for ref, version, _ in self.entries[-1].gradients or ():
            weight = ref()
            if weight is not None and weight.grad is not None and weight.grad._version != version:
                self._clipped = True
                return

    def swapped(self, entry: Entry, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """What to call an entry with: its own arguments, or those a capsule has for it."""
        if self.swap is None or not self.swap(entry):
            return args, kwargs
        made = {(serial, place): ref for ref, serial, place in self._by_id.values()}

        def live(value: Any) -> Any:
            if isinstance(value, Made):
                return made[value]()
            return value.tensor if isinstance(value, Held) else rebuilt(value, live)

        return live(entry.args), live(entry.kwargs)

    def overwritten(self) -> int:
        """How many tensors and numpy arrays from outside somebody wrote to since they were used."""
        arrays = sum(array_digest(array) != digest for array, digest in self._arrays.values())
        ours = {id(ref()) for entry in self.entries for ref in entry.writes}  # a total that the loop adds to
        held = [one for one in self._held.values() if not isinstance(one.tensor, nn.Parameter)]
        return arrays + sum(one.overwritten for one in held if id(one.tensor) not in ours)

    def held(self) -> Iterator[Held]:
        yield from self._held.values()

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _entry(self, kind: Any, call: Any, args: Any, kwargs: Any, frame: FrameType | None) -> Entry:
        self._uses = []
        self._serial += 1
        user = user_frame(frame)
        line = None if user is None else (user.f_code, user.f_lineno)
        args, kwargs = self._ref(args), self._ref(kwargs)
        return Entry(self._serial, kind, call, args, kwargs, line, autocast(), self._uses)

    def _append(self, entry: Entry, output: Any) -> None:
        for place, tensor in enumerate(leaves(output)):
            ref = weakref.ref(tensor)
            entry.outputs.append(ref)
            held = self._held.get(id(tensor))
            if held is None or held.tensor is not tensor:  # written in place, it still comes from outside
                self._by_id[id(tensor)] = (ref, entry.serial, place)
            if entry.grad and tensor.grad_fn is not None and tensor.numel() == 1:
                self.loss = (tensor.detach(), Made(entry.serial, place))
        self.entries.append(entry)

    def _ref(self, value: Any, depth: int = 0) -> Any:
        """The value with every tensor in it replaced by where it comes from."""
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if isinstance(value, torch.Tensor):
            known = self._by_id.get(id(value))
            if known is not None and known[0]() is value:
                self._uses.append(known[1])
                return Made(known[1], known[2])
            held = self._held.get(id(value))
            if held is None or held.tensor is not value:
                held = Held(value)
                self.foreign = self.foreign or held.foreign
                # A foreign one is held by another tensor: its id may be somebody else's soon.
                self._held[id(held.tensor)] = held
            return held
        if depth > 8 or isinstance(value, str | int | float):
            return value
        if kind is tuple:
            return tuple([self._ref(item, depth + 1) for item in value])
        if kind is dict:
            return {key: self._ref(item, depth + 1) for key, item in value.items()}
        if kind.__name__ == "ndarray" and id(value) not in self._arrays:
            self._arrays[id(value)] = (value, array_digest(value))
        return rebuilt(value, lambda item: self._ref(item, depth + 1))

    def _prune(self) -> None:
        self.entries = reachable(self.entries)
        kept = {entry.serial for entry in (*self.carried, *self.entries)}
        self._by_id = {key: made for key, made in self._by_id.items() if made[1] in kept and made[0]() is not None}
        used = {id(held) for entry in (*self.carried, *self.entries) for held in held_in((entry.args, entry.kwargs))}
        self._held = {key: held for key, held in self._held.items() if id(held) in used}
        self._prune_at = max(_PRUNE_AT, 2 * len(self.entries))
        if self._prune_at > _MOST_ENTRIES:
            self.pause()
            self.clear()
            self.too_long = True
