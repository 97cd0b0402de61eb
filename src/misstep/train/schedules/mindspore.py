"""A LearningRateSchedule as a MindSpore cell: MindSpore's own where it has one, else the user's formula compiled."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule as ScheduleCell

from misstep.train import schedules
from misstep.train.schedules import LearningRateSchedule


class TableLR(ScheduleCell):
    """A learning rate looked up by step; after the last one it stays."""

    def __init__(self, rates: list[float]) -> None:
        super().__init__()
        self.rates = ms.Tensor(np.array(rates, np.float32))
        self.last = len(rates) - 1
        self.gather = ops.Gather()
        self.minimum = ops.Minimum()

    def construct(self, global_step):  # type: ignore[no-untyped-def]  # compiled: annotations are not parsed
        return self.gather(self.rates, self.minimum(global_step, self.last), 0)


def schedule_cell(schedule: LearningRateSchedule, *, steps: int | None) -> Any:
    if steps is not None:
        return TableLR([float(schedule(step)) for step in range(steps)])
    kind = type(schedule)
    if kind.__module__ == schedules.__name__:
        arguments = {name: value for name, value in vars(schedule).items() if name != "cls_name"}
        return getattr(nn, kind.__name__)(**arguments)
    cell = type(kind.__name__, (ScheduleCell,), {"construct": kind.construct})()
    for name, value in vars(schedule).items():
        if name != "cls_name":
            setattr(cell, name, value)
    return cell
