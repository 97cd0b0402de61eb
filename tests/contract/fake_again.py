"""The fake adapter, able to run updates again and to put steps into capsules: the shortest thing that keeps both
contracts. Steps themselves it does not run again: the fake framework has no tape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from misstep import kernels
from misstep.adapters.replaying.capsules import (
    FORMAT,
    Doubts,
    how_exactly,
    read_capsule,
    refuse_too_large,
    write_capsule,
)
from misstep.adapters.replaying.protocol import Batch, Capsule, QuietListener, Replayed
from misstep.adapters.step.flow import Flow
from misstep.adapters.step.frame import Frame
from misstep.adapters.step.nests import leaves_in
from misstep.core.stats import Array
from misstep.errors import ReplayError
from misstep.testing.fake import FakeAdapter, _memory
from misstep.testing.fake_framework import Descent, FakeModel, FakeTensor


class RepeatingFake(FakeAdapter):
    """Holds the weights before every update, and what the loop calls its networks with."""

    def attach(self, listener: Any) -> None:
        super().attach(listener)
        self._armed = True
        self._depth = 0
        self._calls: list[dict[str, Any]] = []
        self._held: tuple[Descent, list[Array]] | None = None
        self._recorded: dict[str, Any] = {}
        """The capsule that is played."""
        self._left: list[dict[str, Any]] = []
        """Calls of the capsule that the loop has not made yet."""

    # ── what the loop does ────────────────────────────────────────────────────────────────────────────────────

    def module(self, module: FakeModel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._depth:
            self._guarded("before a network", lambda: self._called(module, list(leaves_in((args, kwargs), FakeTensor))))
        self._depth += 1
        try:
            return super().module(module, args, kwargs)
        finally:
            self._depth -= 1

    def _called(self, network: FakeModel, given: list[FakeTensor]) -> None:
        """The loop calls a network; a capsule may have other values for it."""
        if id(network) not in self._names:
            self.adopt(network)
        self._go_live()
        name = type(network).__name__
        if self._left and self._left[0]["name"] == name:
            for tensor, values in zip(given, self._left.pop(0)["held"]):
                tensor.data = values
            for weight, parameter in self.parameters():
                parameter.data = self._recorded["parameters"][weight].copy()
        self._calls.append({"name": name, "held": [tensor.data.copy() for tensor in given]})

    def _before_update(self, optimizer: Descent) -> None:
        super()._before_update(optimizer)
        if self._armed:
            self._held = optimizer, [weight.data.copy() for weight in optimizer.parameters]

    def _end_step(self, optimizer: Descent) -> None:
        super()._end_step(optimizer)
        self._calls, self._held = [], None

    # ── running again ─────────────────────────────────────────────────────────────────────────────────────────

    def arm_replay(self, on: bool) -> None:
        self._armed = on

    def replay(self) -> Replayed:
        raise ReplayError("the fake framework keeps no tape of a step")

    def take_over(self, replayed: Replayed) -> None:
        """Rows go wherever the listener's frame is."""

    def replay_update(self) -> Replayed:
        if self._held is None:
            raise ReplayError("no update was seen")
        began, (optimizer, before) = perf_counter(), self._held
        frame = Frame()
        frame.begin(self._listening().step)
        flow = Flow(QuietListener(self._listening(), frame), _memory)
        flow.enter(self._optimizer_node(optimizer), "optimizer", ())
        exact = True
        for weight, values in zip(optimizer.parameters, before):
            name, gradient = self._parameter_name(weight), weight.gradient
            if gradient is None:
                continue
            flow.gradients([(name, weight, gradient, ())])
            node, full = flow.operator_node("descend", None, "optimizer")
            call = flow.before_operator(node, full, [gradient], "optimizer")
            new = FakeTensor(values - np.float32(optimizer.learning_rate) * gradient.data)
            if call is not None:
                flow.after_operator(call, [new], "optimizer")
            flow.weights([(name, new)], watched=True)
            exact = exact and new.data.tobytes() == weight.data.tobytes()
        said = "exact" if exact else "not exact: the update came out otherwise from the same weights"
        return Replayed(frame, said, perf_counter() - began)

    def batch(self) -> Batch | None:
        return None

    def bad_with(self, samples: Sequence[int], healthy: Sequence[int]) -> bool:
        raise ReplayError("the fake framework keeps no tape of a step")

    def sample(self, tensor: FakeTensor, index: int) -> Array:
        values: Array = tensor.data[index]
        return values

    # ── in another process ────────────────────────────────────────────────────────────────────────────────────

    def save_capsule(self, path: Path, *, step: int, most_bytes: int, frame: Frame | None = None) -> Capsule:
        parameters = {name: parameter.data for name, parameter in self.parameters()}
        refuse_too_large(step, sum(array.nbytes for array in parameters.values()), most_bytes)
        content = {
            "framework": self.name,
            "format": FORMAT,
            "step": step,
            "parameters": parameters,
            "calls": self._calls,
            "losses": self._loss_digests(),
            "gradients": self._gradient_digests(),
            "operators": {},
        }
        write_capsule(path, content)
        return Capsule(step, path, path.stat().st_size)

    def play_capsule(self, path: Path) -> int:
        self._recorded = read_capsule(path)
        self._left = list(self._recorded["calls"])
        return int(self._recorded["step"])

    def capsule_played(self) -> str:
        doubts = Doubts()
        if self._left:
            doubts.add(f"the loop did not call {self._left[0]['name']} as it had")
        losses, gradients = self._loss_digests(), self._gradient_digests()
        return how_exactly(self._recorded, doubts, losses=losses, gradients=gradients, operators={})

    def _loss_digests(self) -> list[int]:
        return [_digest(np.array(loss)) for loss in self._losses]

    def _gradient_digests(self) -> dict[str, int]:
        return {name: _digest(one.gradient.data) for name, one in self.parameters() if one.gradient is not None}


def _digest(values: Array) -> int:
    plain = np.ascontiguousarray(values)
    return int(kernels.digest(plain.ctypes.data, plain.nbytes))
