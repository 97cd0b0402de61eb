"""A training of a few numpy lines under a real session: real frame, real watchpoints, real controller, real link."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from misstep.adapters.base import Defaults, Place, TrainingStopped, Update
from misstep.adapters.registry import Framework, register
from misstep.capture.session import Session
from misstep.core.stats import DTYPE_CODES
from misstep.hub import RunningHub
from misstep.kernels import summarize
from misstep.settings import Settings

Ask = Callable[..., tuple[int, dict[str, str], bytes]]
"""(status, headers, body) of a request."""

NODES = ("encoder.0", "encoder.1", "decoder")


class Handmade(Defaults):
    """An adapter for a training that is a loop over arrays."""

    name = "handmade"

    def __init__(self, rank: int, world_size: int) -> None:
        self.weight = np.arange(32, dtype=np.float32).reshape(4, 8) / 32
        self.gradient_value = np.full((4, 8), 0.5, np.float32)
        self._rank = (rank, world_size)

    def attach(self, listener: Any) -> None: ...
    def detach(self) -> None: ...
    def set_level(self, level: Any) -> None: ...
    def take_cost(self) -> float:
        return 0.0

    def parameters(self) -> Any:
        return iter([("decoder.weight", self.weight)])

    def buffers(self) -> Any:
        return iter(())

    def gradient(self, parameter: Any) -> Any:
        return self.gradient_value

    def array(self, tensor: Any) -> Any:
        return tensor

    def dtype_name(self, tensor: Any) -> str:
        return str(tensor.dtype)

    def versions(self) -> dict[str, str]:
        return {"handmade": "1"}

    def rank(self) -> tuple[int, int]:
        return self._rank


class SmallTrainee:
    """Trains on a thread of its own until it is told to stop."""

    def __init__(
        self,
        folder: Path,
        hub: RunningHub | None,
        *,
        name: str = "small",
        rank: int = 0,
        world_size: int = 1,
        **settings: Any,
    ) -> None:
        given = {"dir": str(folder), "name": name, "recommended": False, "strict": True, **settings}
        if hub is not None:
            given |= {"hub": hub.link, "token": hub.token}
        self.session = Session(Settings(given))
        self.adapter = Handmade(rank, world_size)
        handmade = Framework("handmade", "numpy", "", lambda numpy, thing: isinstance(thing, numpy.ndarray))
        register(handmade, self.adapter)  # type: ignore[arg-type]
        self.values = {node: np.ones((4, 8), np.float32) for node in NODES}
        """What each node gives; a test may put a NaN in."""
        self.loss = 1.0
        self.stopped: BaseException | None = None
        self._end = threading.Event()
        self._go = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._free = threading.Event()

    def start(self, *, steps: int | None = None) -> SmallTrainee:
        """Train freely, or only so many steps (each `more` allows further ones)."""
        if steps is None:
            self._free.set()
        else:
            self.more(steps)
        self._thread.start()
        return self

    def more(self, steps: int) -> None:
        for _ in range(steps):
            self._go.release()

    def join(self, seconds: float = 30.0) -> None:
        self._thread.join(seconds)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self._end.set()
        self._free.set()
        self._go.release()
        control = self.session.controller
        if control is not None:
            control.close("finished")
        if self._thread.ident is not None:
            self._thread.join(10.0)
        self.session.end("finished")

    def _train(self) -> None:
        session = self.session
        try:
            session.adapters.append(self.adapter)  # type: ignore[arg-type]
            session.going_live(self.adapter)  # type: ignore[arg-type]
            session.entry.first_pause()
            while not self._end.is_set():
                if not self._free.is_set():
                    self._go.acquire()
                    if self._end.is_set():
                        break
                self._step()
        except TrainingStopped as stop:
            self.stopped = stop

    def _step(self) -> None:
        session = self.session
        for name in NODES:
            node = session.catalog.node(name, "module", "Linear")
            self._passes(node, "before")
            self._see(node, "output", self.values[name])
            self._passes(node, "after")
        weight = session.catalog.node("decoder.weight", "parameter", "Parameter")
        self._see(weight, "grad", self.adapter.gradient_value)
        self.adapter.weight -= 0.001 * self.adapter.gradient_value
        self._see(weight, "param", self.adapter.weight)
        session.step_done(self.adapter, Update(self.loss, (self.loss,), 0.001, "SGD"))  # type: ignore[arg-type]

    def _passes(self, node: int, when: Any) -> None:
        if self.session.stepping:
            self.session.at_node(Place(node, "forward", when, "module"))

    def _see(self, node: int, role: Any, values: np.ndarray) -> None:
        session = self.session
        tensor = session.catalog.tensor(node, role)
        shape = session.catalog.shape(values.shape)
        row = session.frame.reserve(tensor, shape, DTYPE_CODES["float32"], None, lambda: values)
        session.frame.summary[row] = summarize(values)
