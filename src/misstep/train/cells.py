"""The networks MindSpore users wrap around their own, for either framework: with a loss, and training themselves.

net_with_loss = WithLossCell(net, loss_fn)
train_net = TrainOneStepWithLossScaleCell(net_with_loss, optimizer, FixedLossScaleUpdateCell(1))
loss, overflow, scale = train_net(data, label)
"""

from __future__ import annotations

from typing import Any

from misstep.errors import TrainError
from misstep.train.loss_scale import loss_scale_from
from misstep.train.steps import framework_for


def WithLossCell(backbone: Any, loss_fn: Any) -> Any:  # named as in MindSpore, where it is a class
    """A network that takes data and label and returns the loss: a torch Module or a MindSpore Cell."""
    return framework_for(backbone, what="backbone").with_loss(backbone, loss_fn)


def TrainOneStepWithLossScaleCell(network: Any, optimizer: Any, scale_sense: Any) -> Any:
    """A network that, when called, trains itself by one step and returns (loss, overflow, scale).

    `network` returns the loss. `scale_sense` is an update cell, a manager, a GradScaler or a number; the scale
    returned is the one this step was computed with. A step whose gradients overflow leaves the weights alone.
    """
    scale = loss_scale_from(scale_sense)
    if scale is None:
        raise TrainError("TrainOneStepWithLossScaleCell needs a scale:  FixedLossScaleUpdateCell(1)")
    return framework_for(network).train_one_step(network, optimizer, scale)
