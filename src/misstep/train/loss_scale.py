"""How much the loss is multiplied before the backward pass, so that small float16 gradients survive it.

Two rules for growing again after an overflow are documented in MindSpore and both are here: the managers look at
`(steps since the last overflow) % window == 0`, the update cells at `>= window` and then restart the count. With a
constant window they agree. All of them halve (divide by `scale_factor`) on overflow and never fall below 1.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from misstep.errors import TrainError

MOST_OVERFLOWS_IN_A_ROW = 1000  # MindSpore's limit: beyond it, the model is broken rather than the scale


@runtime_checkable
class LossScale(Protocol):
    """What a training step asks of a loss scale."""

    def get_loss_scale(self) -> float:
        """The factor for the next step."""

    def update_loss_scale(self, overflow: bool) -> None:
        """Told after every step whether its gradients overflowed."""

    def get_drop_overflow_update(self) -> bool:
        """Whether an overflowing step leaves the weights alone."""


class FixedLossScaleManager:
    """The same scale in every step.

    >>> Model(net, loss_fn, optimizer, loss_scale_manager=FixedLossScaleManager(1024.0))
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self._scale = _at_least(1.0, loss_scale, "loss_scale")
        self._drop = bool(drop_overflow_update)

    def get_loss_scale(self) -> float:
        return self._scale

    def update_loss_scale(self, overflow: bool) -> None:
        """A fixed scale does not move."""

    def get_drop_overflow_update(self) -> bool:
        return self._drop

    def get_update_cell(self) -> FixedLossScaleUpdateCell | None:
        """The same rule for TrainOneStepWithLossScaleCell; None when overflowing steps are not dropped."""
        return FixedLossScaleUpdateCell(self._scale) if self._drop else None


class DynamicLossScaleManager:
    """A scale that falls at every overflow and grows again after `scale_window` steps without one."""

    def __init__(self, init_loss_scale: float = 2.0**24, scale_factor: float = 2, scale_window: int = 2000) -> None:
        self.loss_scale = _at_least(1.0, init_loss_scale, "init_loss_scale")
        self.scale_factor = _factor(scale_factor)
        self.scale_window = _window(scale_window)
        self.increase_ratio = self.scale_factor
        self.decrease_ratio = 1 / self.scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = 0
        self.bad_step = 0

    def get_loss_scale(self) -> float:
        return self.loss_scale

    def update_loss_scale(self, overflow: bool) -> None:
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1.0)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
            if self.bad_step > MOST_OVERFLOWS_IN_A_ROW:
                raise TrainError(
                    f"gradients overflowed in {self.bad_step} steps in a row, down to a loss scale of "
                    f"{self.loss_scale:g}: the model itself gives NaN or Inf:  misstep run --watch overflow"
                )
        else:
            self.bad_step = 0
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.increase_ratio
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        return True

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        """The update-cell rule from the same starting point."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)


class FixedLossScaleUpdateCell:
    """A fixed scale for TrainOneStepWithLossScaleCell."""

    def __init__(self, loss_scale_value: float) -> None:
        self.loss_scale_value = _at_least(0.0, loss_scale_value, "loss_scale_value")

    def get_loss_scale(self) -> float:
        return self.loss_scale_value

    def update_loss_scale(self, overflow: bool) -> None:
        """A fixed scale does not move."""

    def get_drop_overflow_update(self) -> bool:
        return True


class DynamicLossScaleUpdateCell:
    """A moving scale for TrainOneStepWithLossScaleCell; the count restarts whenever the scale moves."""

    def __init__(self, loss_scale_value: float, scale_factor: float, scale_window: int) -> None:
        self.loss_scale_value = _at_least(1.0, loss_scale_value, "loss_scale_value")
        self.scale_factor = _factor(scale_factor)
        self.scale_window = _window(scale_window)
        self.cur_iter = 1
        self.last_overflow_iter = 0

    def get_loss_scale(self) -> float:
        return self.loss_scale_value

    def update_loss_scale(self, overflow: bool) -> None:
        should_grow = self.cur_iter - self.last_overflow_iter >= self.scale_window
        if overflow:
            self.loss_scale_value = max(self.loss_scale_value / self.scale_factor, 1.0)
        elif should_grow:
            self.loss_scale_value *= self.scale_factor
        if overflow or should_grow:
            self.last_overflow_iter = self.cur_iter
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        return True


class ScalerLossScale:
    """A torch.amp.GradScaler the user made: its own rule moves the scale, this only reads it."""

    def __init__(self, scaler: Any) -> None:
        self.scaler = scaler

    def get_loss_scale(self) -> float:
        return float(self.scaler.get_scale())

    def update_loss_scale(self, overflow: bool) -> None:
        self.scaler.update()

    def get_drop_overflow_update(self) -> bool:
        return True


def loss_scale_from(given: Any) -> LossScale | None:
    """A loss scale from what users pass: one of ours, a number, a GradScaler, or MindSpore's managers and cells."""
    if given is None:
        return None
    if isinstance(given, LossScale):
        return given
    if isinstance(given, int | float):
        return FixedLossScaleUpdateCell(float(given))
    if all(hasattr(given, name) for name in ("get_scale", "unscale_", "update")):
        return ScalerLossScale(given)
    if hasattr(given, "get_loss_scale"):  # a MindSpore update cell: same numbers, our rule (its own needs an NPU)
        value = float(given.get_loss_scale())
        if hasattr(given, "scale_window"):
            return DynamicLossScaleUpdateCell(value, float(given.scale_factor), int(given.scale_window))
        return FixedLossScaleUpdateCell(value)
    raise TrainError(
        f"a loss scale must be a FixedLossScaleManager, a DynamicLossScaleManager, an update cell, a GradScaler or a "
        f"number, got {type(given).__name__}"
    )


def _at_least(least: float, value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    if value < least or (least == 0 and value <= 0):
        raise ValueError(f"{name} must be {'positive' if least == 0 else f'at least {least:g}'}, got {value:g}")
    return float(value)


def _factor(value: float) -> float:
    if not value > 1:
        raise ValueError(f"scale_factor must be more than 1, got {value:g}: the scale could not move")
    return float(value)


def _window(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"scale_window must be a whole number of steps, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"scale_window must be at least 1, got {value}")
    return value
