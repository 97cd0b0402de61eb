"""What can be asked of MindSpore at any time: weights and buffers by name, values, versions, ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.names import OPTIMIZERS, Names
from misstep.adapters.timing.clock import Clock
from misstep.adapters.timing.compilations import Compilations
from misstep.adapters.timing.loaders import Loaders
from misstep.core import segments
from misstep.core.cells import BACKWARD, BETWEEN, FORWARD, OPTIMIZER, PHASE, Cells

if TYPE_CHECKING:
    from misstep.adapters.mindspore.looking import FactSeam
    from misstep.adapters.mindspore.seams.patches import Seams

_TIME = {FORWARD: segments.FORWARD, BACKWARD: segments.BACKWARD, OPTIMIZER: segments.OPTIMIZER}
_AFTER = {segments.FORWARD: segments.LOSS, segments.BACKWARD: segments.GRADIENTS, segments.OPTIMIZER: segments.GAP}


class Facts:
    """The part of the adapter that only answers."""

    names: Names
    cells: Cells
    seams: Seams

    @property
    def clock(self) -> Clock:
        """Where the time of a step goes."""
        return self.seams.clock

    @property
    def facts(self) -> FactSeam:
        """How the program trains."""
        return self.seams.facts

    @property
    def loaders(self) -> Loaders:
        return self.seams.loaders

    @property
    def compilations(self) -> Compilations:
        return self.seams.compilations

    def enters(self, phase: int) -> None:
        """Training is busy with this now: for the flight recorder, and for the clock."""
        self.cells[PHASE] = phase
        clock = self.seams.clock
        clock.switch(_AFTER.get(clock.segment, clock.segment) if phase == BETWEEN else _TIME[phase])

    def parameters(self) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for owner in (*self.names.networks(), *self.names.optimizers()):
            own = owner.parameters if isinstance(owner, OPTIMIZERS) else owner.trainable_params()
            for parameter in own:
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield self.names.parameter(parameter), parameter

    def buffers(self) -> Iterator[tuple[str, Any]]:
        for root in self.names.networks():
            for parameter in root.untrainable_params():
                yield self.names.parameter(parameter), parameter

    def array(self, tensor: Any) -> NDArray[Any]:
        return tensors.array(tensor)

    def dtype_name(self, tensor: Any) -> str:
        return tensors.dtype_name(tensor)

    def versions(self) -> dict[str, str]:
        return {"mindspore": str(ms.__version__), "numpy": np.__version__}

    def rank(self) -> tuple[int, int]:
        communication = sys.modules.get("mindspore.communication.management")
        if communication is not None and communication.GlobalComm.INITED:
            return int(communication.get_rank()), int(communication.get_group_size())
        workers = os.environ.get("MS_WORKER_NUM") or os.environ.get("RANK_SIZE") or "1"
        return int(os.environ.get("RANK_ID") or os.environ.get("MS_NODE_ID") or 0), int(workers)
