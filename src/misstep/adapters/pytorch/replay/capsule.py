"""A step in a file: weights, optimizer, random numbers and batch, to be run again in another process.

    save:  at the step, before the update ─► one file that torch.load(weights_only=True) can read
    play:  the same command again ─► at its first network call weights, buffers and random numbers are put in, and every
           call of the loop gets the tensors it got then ─► losses, gradients and operators are compared by digest

The script runs unedited: the tape numbers what the loop calls, and call by call it is the same loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from misstep.adapters.pytorch import tensors
from misstep.adapters.pytorch.replay.entries import Entry, held_in
from misstep.adapters.pytorch.replay.rerun import needed_entries
from misstep.adapters.pytorch.replay.state import Randomness
from misstep.adapters.replaying.capsules import Doubts, how_exactly, operator_digests, refuse_too_large
from misstep.adapters.replaying.protocol import Capsule
from misstep.adapters.step.frame import Frame
from misstep.errors import ReplayError
from misstep.sentences import replay as texts
from misstep.store.atomic import draft

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

FORMAT = 1


def save_capsule(
    adapter: PyTorchAdapter, path: Path, *, step: int, most_bytes: int, frame: Frame | None = None
) -> Capsule:
    """Write the step under way; its weights have not moved yet."""
    tape = adapter.tape
    entries = needed_entries(tape)
    if not entries or len(entries) > len(tape.entries) or tape.randomness is None or entries[0].kind != "module":
        raise ReplayError(texts.NO_NETWORK_FIRST.of())
    content: dict[str, Any] = {
        "format": FORMAT,
        "step": step,
        "torch": str(torch.__version__),
        "threads": tape.threads,
        "randomness": tape.randomness.plain(),
        "parameters": {name: weight.detach() for name, weight in adapter.parameters()},
        "buffers": _buffers(adapter),
        "optimizers": [optimizer.state_dict() for optimizer in adapter.optimizers()],
        "entries": [_plain_entry(entry) for entry in tape.entries],
        "losses": [tensors.digest(loss) for entry in tape.entries for loss in entry.losses],
        "gradients": _gradients(adapter),
        "operators": {} if frame is None else operator_digests(adapter.catalog.graph, frame),
    }
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.leaves(content))
    refuse_too_large(step, size, most_bytes)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with draft(path) as partial:
            torch.save(content, partial)
    except RuntimeError as error:  # how torch tells of a full disk
        raise OSError(str(error).splitlines()[0]) from None
    return Capsule(step, path, path.stat().st_size)


class CapsulePlayer:
    """Puts a capsule's step into a program that is about to train."""

    def __init__(self, adapter: PyTorchAdapter, path: Path) -> None:
        self.adapter = adapter
        try:
            self.content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise ReplayError(texts.UNREADABLE.of(path=path, why=str(error))) from error
        if self.content.get("format") != FORMAT:
            raise ReplayError(texts.OTHER_VERSION.of(path=path))
        self.step = int(self.content["step"])
        self._doubts = Doubts()
        self._next = 0
        self._loaded: set[str] = set()

    def swap(self, entry: Entry) -> bool:
        """Give a call of the loop what it was given in the recorded step."""
        recorded = self.content["entries"]
        while self._next < len(recorded) and recorded[self._next]["kind"] == "backward":
            self._next += 1
        if self._next == len(recorded):
            return False
        wanted = recorded[self._next]
        if (entry.kind, _name_of(entry)) != (wanted["kind"], wanted["name"]):
            return False  # most calls make no tensor and are not in the capsule
        first = self._next == 0
        self._next += 1
        with self.adapter.quietly(), torch.no_grad():
            if entry.kind == "module":
                self._put_state(entry, wanted)
            self._put_tensors(entry, wanted)
            if first:
                torch.set_num_threads(int(self.content["threads"]))
                Randomness.from_plain(self.content["randomness"]).restore()
            if wanted["random"] is not None:
                torch.set_rng_state(wanted["random"])
        return True

    def put_optimizers(self) -> None:
        """Before the update: optimizers as they were then."""
        for optimizer, state in zip(self.adapter.optimizers(), self.content["optimizers"]):
            optimizer.load_state_dict(state)

    def verdict(self, frame: Frame) -> str:
        """'exact', or what differs from the recorded step."""
        adapter = self.adapter
        left = [entry["name"] for entry in self.content["entries"][self._next :] if entry["kind"] != "backward"]
        if left:
            self._doubts.add(texts.NOT_CALLED_AS_BEFORE.of(name=left[0]))
        if not self._next:
            return texts.NOT_EXACT.of(why=texts.NEVER_CALLED.of())
        return how_exactly(
            self.content,
            self._doubts,
            losses=[tensors.digest(loss) for entry in adapter.tape.entries for loss in entry.losses],
            gradients=_gradients(adapter),
            operators=operator_digests(adapter.catalog.graph, frame),
        )

    def _put_state(self, entry: Entry, wanted: dict[str, Any]) -> None:
        for name, tensor in (*self.adapter.parameters(), *self.adapter.buffers()):
            value = self.content["parameters"].get(name, self.content["buffers"].get(name))
            if name in self._loaded or value is None:
                continue
            if value.shape != tensor.shape:
                self._doubts.add(
                    texts.OTHER_SHAPE.of(name=name, now=str(tuple(tensor.shape)), then=str(tuple(value.shape)))
                )
                continue
            tensor.copy_(value)
            self._loaded.add(name)
        for path, name, value in wanted["attributes"]:
            entry.call.get_submodule(path).__dict__[name] = value

    def _put_tensors(self, entry: Entry, wanted: dict[str, Any]) -> None:
        held = [one for one in held_in((entry.args, entry.kwargs)) if not isinstance(one.tensor, nn.Parameter)]
        if len(held) != len(wanted["held"]):
            self._doubts.add(texts.CALLED_WITH.of(name=wanted["name"], now=len(held), then=len(wanted["held"])))
            return
        for one, tensor in zip(held, wanted["held"]):
            fresh = tensor.to(one.tensor.device, copy=True)
            one.tensor = fresh.requires_grad_() if one.tensor.requires_grad and not one.foreign else fresh
            one.version = one.tensor._version


def _plain_entry(entry: Entry) -> dict[str, Any]:
    held = [
        one.tensor.detach() for one in held_in((entry.args, entry.kwargs)) if not isinstance(one.tensor, nn.Parameter)
    ]
    return {
        "kind": entry.kind,
        "name": _name_of(entry),
        "held": held,
        "random": entry.random,
        "attributes": list(_attributes(entry)),
    }


def _attributes(entry: Entry) -> Iterator[tuple[str, str, Any]]:
    if entry.state is None:
        return
    paths = {id(module): path for path, module in entry.call.named_modules()}
    for module, name, value, _ in entry.state.attributes:
        if isinstance(value, int | float | bool | str | torch.Tensor) and name != "training":
            yield paths[id(module)], name, value.detach() if isinstance(value, torch.Tensor) else value


def _buffers(adapter: PyTorchAdapter) -> dict[str, torch.Tensor]:
    """As they were when their network was called."""
    found = {name: buffer.detach() for name, buffer in adapter.buffers()}
    for entry in adapter.tape.entries:
        for _, _, buffer, _, value in entry.state.buffers if entry.state is not None else ():
            found[adapter.names.parameter(buffer)] = value
    return found


def _gradients(adapter: PyTorchAdapter) -> dict[str, int]:
    return {name: tensors.digest(weight.grad) for name, weight in adapter.parameters() if weight.grad is not None}


def _name_of(entry: Entry) -> str:
    if entry.kind == "module":
        return type(entry.call).__name__
    return str(getattr(entry.call, "__name__", ""))
