"""Which steps are profiled, and when the framework's profiler is switched on and off."""

from __future__ import annotations

import importlib
import time
from typing import TYPE_CHECKING, Any

from misstep.adapters.base import Adapter
from misstep.store.layout import rank_paths

if TYPE_CHECKING:
    from misstep.capture.session import Session


class ProfiledSteps:
    """A stretch of steps, such as 5:8; a slice ends before its end, as everywhere."""

    def __init__(self, session: Session, steps: str) -> None:
        first, _, after = steps.partition(":")
        self.first = max(2, int(first))  # the first step is not like the others
        self.last = max(self.first, int(after) - 1 if after else self.first)
        self._session = session
        self._profiling: Any = None
        self._began = 0.0

    def step_done(self, adapter: Adapter, number: int) -> None:
        if self._profiling is not None and number >= self.last:
            self.end()
        elif self._profiling is None and number == self.first - 1:
            try:
                module = importlib.import_module(f"misstep.adapters.{adapter.name}.profiling")
            except ModuleNotFoundError:
                return
            self._profiling = module.Profiling()
            self._profiling.start()
            self._began = time.perf_counter()

    def end(self) -> None:
        """Also when the training ends in the middle of it."""
        profiling, self._profiling, writer = self._profiling, None, self._session.writer
        if profiling is None or writer is None:
            return
        seconds = time.perf_counter() - self._began
        path = rank_paths(writer.directory, writer.rank).directory / f"profile-{self.first}-{self.last}.json"
        profiling.stop(path)
        writer.event("profile", path=path.name, first=self.first, last=self.last, seconds=seconds)
