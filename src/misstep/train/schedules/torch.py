"""A LearningRateSchedule as a torch scheduler."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from misstep.train.schedules import LearningRateSchedule


class ScheduledLR(LRScheduler):
    """Sets every parameter group to the schedule's rate."""

    def __init__(self, optimizer: Any, schedule: LearningRateSchedule, last_epoch: int = -1) -> None:
        self.schedule = schedule
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        return [float(self.schedule(self.last_epoch))] * len(self.optimizer.param_groups)


def scheduler(schedule: LearningRateSchedule, optimizer: Any, *, last_epoch: int) -> ScheduledLR:
    return ScheduledLR(optimizer, schedule, last_epoch)
