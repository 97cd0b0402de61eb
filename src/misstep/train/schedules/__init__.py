"""Learning rates that change: one formula, usable as a function, a torch scheduler and a MindSpore cell.

    schedule = WarmUpLR(0.1, warmup_steps=100)
    schedule(0), schedule(50)                      # 0.0, 0.05
    scheduler = schedule.torch(optimizer)          # torch.optim.lr_scheduler.LRScheduler
    nn.Momentum(params, schedule.mindspore(), 0.9)
    model.train(10, data, callbacks=LearningRateScheduler(schedule))      # either framework

Your own is a subclass with a `construct(self, global_step)`. The list functions give the rate of every step of a run
whose rate changes once an epoch: they are the same formulas, asked about epochs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


class LearningRateSchedule:
    """A learning rate for every step, counted from 0; subclass it and write `construct`.

    >>> class HalfAfter(LearningRateSchedule):
    ...     def __init__(self, rate, step):
    ...         super().__init__()
    ...         self.rate, self.step = rate, step
    ...     def construct(self, global_step):
    ...         return self.rate if global_step < self.step else self.rate / 2
    """

    def __init__(self) -> None:
        self.cls_name = type(self).__name__

    def construct(self, global_step: Any) -> Any:
        """The learning rate at a step."""
        raise NotImplementedError(f"{type(self).__name__} needs a method construct(self, global_step)")

    def __call__(self, global_step: Any) -> Any:
        return self.construct(global_step)

    def torch(self, optimizer: Any, *, last_epoch: int = -1) -> Any:
        """A torch scheduler; call its `step()` after every optimizer step."""
        from misstep.train.schedules.torch import scheduler

        return scheduler(self, optimizer, last_epoch=last_epoch)

    def mindspore(self, *, steps: int | None = None) -> Any:
        """A MindSpore schedule cell to pass as `learning_rate` of an optimizer.

        A `construct` of one's own is compiled by MindSpore, so it must be written in its graph syntax. If it is not,
        `steps=` makes a table of that many rates instead; later steps keep the last.
        """
        from misstep.train.schedules.mindspore import schedule_cell

        return schedule_cell(self, steps=steps)


class WarmUpLR(LearningRateSchedule):
    """Rises in a straight line from 0 at step 0 to `learning_rate` at `warmup_steps`, and stays there."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate = _rate(learning_rate, "learning_rate", zero=True)
        self.warmup_steps = _count(warmup_steps, "warmup_steps")

    def construct(self, global_step: int) -> float:
        return self.learning_rate * min(global_step, self.warmup_steps) / self.warmup_steps


class _Decay(LearningRateSchedule):
    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        self.learning_rate = _rate(learning_rate, "learning_rate")
        self.decay_rate = _rate(decay_rate, "decay_rate")
        self.decay_steps = _count(decay_steps, "decay_steps")
        self.is_stair = bool(is_stair)

    def _periods(self, global_step: int) -> float:
        periods = global_step / self.decay_steps
        return math.floor(periods) if self.is_stair else periods


class ExponentialDecayLR(_Decay):
    """learning_rate · decay_rate^(step / decay_steps); in stairs, with the exponent rounded down."""

    def construct(self, global_step: int) -> float:
        return float(self.learning_rate * self.decay_rate ** self._periods(global_step))


class NaturalExpDecayLR(_Decay):
    """learning_rate · e^(−decay_rate · step); in stairs, with the step rounded down to a multiple of decay_steps."""

    def construct(self, global_step: int) -> float:
        step = self._periods(global_step) * self.decay_steps if self.is_stair else global_step
        return self.learning_rate * math.exp(-self.decay_rate * step)


class InverseDecayLR(_Decay):
    """learning_rate / (1 + decay_rate · step / decay_steps); in stairs, with the quotient rounded down."""

    def construct(self, global_step: int) -> float:
        return self.learning_rate / (1 + self.decay_rate * self._periods(global_step))


class CosineDecayLR(LearningRateSchedule):
    """Falls along half a cosine from `max_lr` to `min_lr` in `decay_steps` steps, and stays there."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self.min_lr = _rate(min_lr, "min_lr", zero=True)
        self.max_lr = _rate(max_lr, "max_lr")
        self.decay_steps = _count(decay_steps, "decay_steps")
        if self.min_lr >= self.max_lr:
            raise ValueError(f"min_lr must be less than max_lr, got {min_lr:g} and {max_lr:g}")

    def construct(self, global_step: int) -> float:
        part = min(global_step, self.decay_steps) / self.decay_steps
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1 + math.cos(math.pi * part))


class PolynomialDecayLR(LearningRateSchedule):
    """From `learning_rate` to `end_learning_rate` along (1 − step / decay_steps)^power.

    With `update_decay_steps`, decay_steps grows to the next multiple as soon as the step passes it, so the rate rises
    and falls again.
    """

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        self.learning_rate = _rate(learning_rate, "learning_rate")
        self.end_learning_rate = _rate(end_learning_rate, "end_learning_rate", zero=True)
        self.decay_steps = _count(decay_steps, "decay_steps")
        self.power = _rate(power, "power")
        self.update_decay_steps = bool(update_decay_steps)

    def construct(self, global_step: int) -> float:
        length = self.decay_steps
        if self.update_decay_steps:
            length *= max(math.ceil(global_step / length), 1)
        part = min(global_step, length) / length
        span = self.learning_rate - self.end_learning_rate
        return float(span * (1 - part) ** self.power + self.end_learning_rate)


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """`learning_rates[i]` until step `milestone[i]`.

    >>> piecewise_constant_lr([2, 5], [0.1, 0.05])
    [0.1, 0.1, 0.05, 0.05, 0.05]
    """
    if len(milestone) != len(learning_rates):
        raise ValueError(f"{len(milestone)} milestones need as many learning rates, got {len(learning_rates)}")
    rates: list[float] = []
    for until, rate in zip(milestone, learning_rates):
        if until < len(rates):
            raise ValueError(f"milestones must rise, got {list(milestone)}")
        rates += [_rate(rate, "learning_rates")] * (until - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """ExponentialDecayLR over epochs."""
    return _by_epoch(ExponentialDecayLR(learning_rate, decay_rate, decay_epoch, is_stair), total_step, step_per_epoch)


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """NaturalExpDecayLR over epochs."""
    return _by_epoch(NaturalExpDecayLR(learning_rate, decay_rate, decay_epoch, is_stair), total_step, step_per_epoch)


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """InverseDecayLR over epochs."""
    return _by_epoch(InverseDecayLR(learning_rate, decay_rate, decay_epoch, is_stair), total_step, step_per_epoch)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """CosineDecayLR over epochs."""
    return _by_epoch(CosineDecayLR(min_lr, max_lr, decay_epoch), total_step, step_per_epoch)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """PolynomialDecayLR over epochs."""
    schedule = PolynomialDecayLR(learning_rate, end_learning_rate, decay_epoch, power, update_decay_epoch)
    return _by_epoch(schedule, total_step, step_per_epoch)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """WarmUpLR over epochs."""
    return _by_epoch(WarmUpLR(learning_rate, warmup_epoch), total_step, step_per_epoch)


def _by_epoch(schedule: LearningRateSchedule, total_step: int, step_per_epoch: int) -> list[float]:
    length = _count(step_per_epoch, "step_per_epoch")
    return [schedule(step // length) for step in range(_count(total_step, "total_step"))]


def _rate(value: float, name: str, *, zero: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a float, got {type(value).__name__}")
    if value < 0 or (value == 0 and not zero) or not math.isfinite(value):
        raise ValueError(f"{name} must be {'at least' if zero else 'greater than'} 0, got {value}")
    return float(value)


def _count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return value
