"""What the adapter looks at, as one value: whom it tells, the frame it fills, the watches that fill it, and where in
the step it is. A replay is a second observation."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from misstep.adapters.base import Listener
from misstep.adapters.pytorch.seams.modules import ModuleSeam
from misstep.adapters.pytorch.seams.operators import OperatorWatch
from misstep.adapters.pytorch.tensors import Seer
from misstep.adapters.step.frame import Frame
from misstep.core.levels import Level

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter


@dataclass(slots=True)
class Observation:
    """The hot path reads these from the adapter itself: one look less at every operator."""

    listener: Listener
    frame: Frame
    seer: Seer
    operators: OperatorWatch
    modules: ModuleSeam
    level: Level
    thread: int
    replaying: bool = False
    network_ran: bool = False
    in_backward: bool = False
    updating: int | None = None
    outer: FrameType | None = None
    stand_in: tuple[CodeType, int] | None = None
    gradient_rows: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, adapter: PyTorchAdapter) -> Observation:
        """What the adapter looks at now."""
        return cls(**{one.name: getattr(adapter, one.name) for one in dataclasses.fields(cls)})

    def put_into(self, adapter: PyTorchAdapter) -> None:
        """From here on the adapter looks at this."""
        for one in dataclasses.fields(self):
            setattr(adapter, one.name, getattr(self, one.name))
