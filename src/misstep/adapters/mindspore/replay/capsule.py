"""A MindSpore step in a file: weights, optimizer, random numbers and batch, to be run again in another process.

    save:  at the step, before the update ─► one file, plain bytes and JSON
    play:  the same command again ─► every call of the loop gets the tensors it got then, every network its weights and
           moving means, dropout its masks ─► losses, gradients and operators are compared by digest

The script runs unedited. What a loop calls is a network, one of MindSpore's training wrappers, or the function given to
value_and_grad, with its arguments and the tensors it finds outside of itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mindspore as ms
import ml_dtypes
import numpy as np
from mindspore import nn

from misstep import kernels
from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.replay.state import NetworkState, Randomness, attributes_of
from misstep.adapters.mindspore.replay.tape import outside_of, rebuilt
from misstep.adapters.mindspore.replay.update_replay import state_of
from misstep.adapters.replaying.capsules import (
    FORMAT,
    Doubts,
    how_exactly,
    operator_digests,
    read_capsule,
    refuse_too_large,
    write_capsule,
)
from misstep.adapters.replaying.protocol import Capsule
from misstep.adapters.step.frame import Frame
from misstep.errors import ReplayError
from misstep.sentences import replay as texts

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter


def save_capsule(
    adapter: MindSporeAdapter, path: Path, *, step: int, most_bytes: int, frame: Frame | None = None
) -> Capsule:
    """Write the step under way; its weights have not moved yet."""
    tape = adapter.tape
    if tape.compiled is not None:
        raise ReplayError(texts.COMPILED_NO_CAPSULE.of(step=step))
    if not tape.calls or not tape.states or tape.randomness is None:
        raise ReplayError(texts.NOT_DIFFERENTIATED.of())
    content: dict[str, Any] = {
        "framework": "mindspore",
        "format": FORMAT,
        "step": step,
        "mindspore": str(ms.__version__),
        "randomness": tape.randomness.plain(),
        "parameters": {name: tensors.array(weight) for name, weight in adapter.parameters()},
        "buffers": _buffers(adapter),
        "optimizers": [_optimizer(one) for one in adapter.names.optimizers()],
        "calls": [
            {
                "name": call.name,
                "held": _arrays(call.held),
                "outside": {name: tensors.array(tensor) for name, tensor in call.outside},
            }
            for call in tape.calls
        ],
        "networks": [list(_plain_attributes(state)) for state in tape.states.values()],
        "masks": _arrays(tape.masks),
        "losses": _losses(adapter),
        "gradients": _gradients(adapter),
        "operators": {} if frame is None else operator_digests(adapter.listener.catalog.graph, frame),
    }
    refuse_too_large(step, _size(content), most_bytes)
    write_capsule(path, content)
    return Capsule(step, path, path.stat().st_size)


class CapsulePlayer:
    """Puts a capsule's step into a program that is about to train."""

    def __init__(self, adapter: MindSporeAdapter, path: Path) -> None:
        self.adapter = adapter
        self.content = read_capsule(path)
        self.step = int(self.content["step"])
        self._doubts = Doubts()
        self._calls = list(self.content["calls"])
        self._networks = list(self.content["networks"])
        self._loaded: set[str] = set()
        self._begun: set[int] = set()
        """Networks whose attributes were put in."""
        self._instead: dict[int, tuple[Any, Any]] = {}
        """By id of a tensor of the program: it, and the one that takes its place."""

    @property
    def begun(self) -> bool:
        return len(self._calls) < len(self.content["calls"])

    def swap(self, name: str, function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Give a call of the loop what it was given in the recorded step."""
        if not self._calls or self._calls[0]["name"] != name:
            return args, kwargs
        if not self.begun:
            Randomness.from_plain(self.content["randomness"]).restore()
            self.adapter.tape.playing = iter([_tensor(mask) for mask in self.content["masks"]])
        wanted = self._calls.pop(0)
        found = [tensor for tensor in tensors.leaves((args, kwargs)) if not isinstance(tensor, ms.Parameter)]
        if len(found) != len(wanted["held"]):
            self._doubts.add(texts.CALLED_WITH.of(name=name, now=len(found), then=len(wanted["held"])))
            return args, kwargs
        for tensor, values in zip(found, wanted["held"]):
            self._instead.setdefault(id(tensor), (tensor, _tensor(values)))
        for key, _, put in outside_of(function):
            if key in wanted["outside"]:
                put(_tensor(wanted["outside"][key]))
        return self.instead(args), self.instead(kwargs)

    def instead(self, value: Any) -> Any:
        """The same arguments with the tensors of the capsule in them."""
        return rebuilt(value, lambda tensor: self._instead.get(id(tensor), (None, tensor))[1])

    def network_begins(self, network: nn.Cell) -> None:
        """Weights, moving means and attributes of a network that is called for the first time."""
        for name, tensor in (*self.adapter.parameters(), *self.adapter.buffers()):
            values = self.content["parameters"].get(name, self.content["buffers"].get(name))
            if name not in self._loaded and values is not None:
                self._loaded.add(name)
                self._put(name, tensor, values)
        if self._networks and id(network) not in self._begun:
            self._begun.add(id(network))
            _put_attributes(network, self._networks.pop(0))

    def put_optimizers(self) -> None:
        """Before the update: optimizers as they were then."""
        for optimizer, recorded in zip(self.adapter.names.optimizers(), self.content["optimizers"]):
            state = _state(optimizer)
            if len(state) != len(recorded["state"]):
                had = len(recorded["state"])
                self._doubts.add(texts.STATE_SIZE.of(name=type(optimizer).__name__, now=len(state), then=had))
                continue
            for place, (tensor, values) in enumerate(zip(state, recorded["state"])):
                self._put(str(getattr(tensor, "name", f"state {place} of the optimizer")), tensor, values)
            _put_attributes(optimizer, recorded["attributes"])

    def verdict(self, frame: Frame) -> str:
        """'exact', or what differs from the recorded step."""
        if self._calls:
            self._doubts.add(texts.NOT_CALLED_AS_BEFORE.of(name=self._calls[0]["name"]))
        if not self.begun:
            return texts.NOT_EXACT.of(why=texts.NEVER_CALLED.of())
        adapter = self.adapter
        operators = operator_digests(adapter.listener.catalog.graph, frame)
        return how_exactly(
            self.content, self._doubts, losses=_losses(adapter), gradients=_gradients(adapter), operators=operators
        )

    def _put(self, name: str, tensor: Any, values: Any) -> None:
        if tensor.has_init:
            tensor.init_data()
        if not tensor.is_contiguous():
            self._doubts.add(texts.IS_VIEW.of(name=name))
            return
        if (tuple(tensor.shape), tensors.dtype_name(tensor)) != (values.shape, values.dtype.name):
            self._doubts.add(texts.OTHER_SHAPE.of(name=name, now=str(tuple(tensor.shape)), then=str(values.shape)))
            return
        ctypes.memmove(tensor.data_ptr(), values.ctypes.data, values.nbytes)


def _buffers(adapter: MindSporeAdapter) -> dict[str, Any]:
    """As they were when their network was called."""
    found = {name: tensors.array(one) for name, one in adapter.buffers() if not one.has_init}
    for state in adapter.tape.states.values():
        found.update((adapter.names.parameter(one), values) for one, values in state.buffers)
    return found


def _optimizer(optimizer: nn.Cell) -> dict[str, Any]:
    attributes = NetworkState(optimizer, [], list(attributes_of(optimizer)))
    return {"state": _arrays(_state(optimizer)), "attributes": list(_plain_attributes(attributes))}


def _state(optimizer: nn.Cell) -> list[Any]:
    """What an optimizer keeps beside the weights themselves."""
    weights = {id(weight) for weight in optimizer.parameters}
    return [tensor for tensor in state_of(optimizer) if id(tensor) not in weights]


def _plain_attributes(state: NetworkState) -> Iterator[tuple[str, str, Any]]:
    paths = {id(cell): path for path, cell in state.network.cells_and_names()}
    for cell, name, value in state.attributes:
        if isinstance(value, ms.Tensor):
            yield paths[id(cell)], name, tensors.array(value)
        elif isinstance(value, int | float | bool | str) and name != "training":
            yield paths[id(cell)], name, value


def _put_attributes(network: nn.Cell, attributes: Iterable[tuple[str, str, Any]]) -> None:
    spaces: dict[str, dict[str, Any]] = {path: vars(cell) for path, cell in network.cells_and_names()}
    for path, name, value in attributes:
        if path in spaces:
            spaces[path][name] = _tensor(value) if isinstance(value, np.ndarray) else value


def _losses(adapter: MindSporeAdapter) -> list[int]:
    return [_digest(entry.loss) for entry in adapter.tape.entries if entry.loss is not None]


def _gradients(adapter: MindSporeAdapter) -> dict[str, int]:
    """Of what the optimizer is given, by weight."""
    given = ((name, adapter.gradient(weight)) for name, weight in adapter.parameters())
    return {name: _digest(gradient) for name, gradient in given if gradient is not None}


def _digest(tensor: Any) -> int:
    values = np.ascontiguousarray(tensors.array(tensor))
    return int(kernels.digest(values.ctypes.data, values.nbytes))


def _arrays(found: Iterable[Any]) -> list[Any]:
    return [tensors.array(tensor) for tensor in found if not isinstance(tensor, ms.Parameter) or not tensor.has_init]


def _tensor(values: Any) -> Any:
    if values.dtype == ml_dtypes.bfloat16:
        return ms.Tensor(values.astype(np.float32)).astype(ms.bfloat16)
    return ms.Tensor(values)


def _size(content: Any) -> int:
    if isinstance(content, np.ndarray):
        return content.nbytes
    inside = content.values() if isinstance(content, dict) else content if isinstance(content, list | tuple) else ()
    return sum(_size(item) for item in inside)
