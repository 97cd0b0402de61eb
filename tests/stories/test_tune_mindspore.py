"""A MindSpore script as MindOptimizer's users wrote it, tuned unchanged: values by HyperConfig, trials judged by their
runs. One optimizer never moves a weight, one learning rate makes a NaN: both are ended with the reason."""

from __future__ import annotations

import json
import sys

import pytest
from story import RunCommand, Write

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

SCRIPT = """
import numpy as np
import mindspore as ms
from mindspore import mint, nn, ops
from mindinsight.optimizer import HyperConfig

params = HyperConfig().params
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
if params.kind == "dead":
    optimizer = mint.optim.SGD(net.trainable_params(), lr=params.learning_rate)
else:
    optimizer = nn.Momentum(net.trainable_params(), params.learning_rate, 0.9)
x = ms.Tensor(np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32))
target = x.sum(axis=1, keepdims=True)
step = 0


def forward():
    y = net(x)
    if params.kind == "nan" and step == 5:
        y = ops.log(y - 100)
    return ((y - target) ** 2).mean()


gradients = ms.value_and_grad(forward, None, optimizer.parameters)
for step in range(1, 31):
    loss, grads = gradients()
    optimizer(grads)
"""
STUDY = f"""
study: cells
command: {sys.executable} train.py
parameters:
  learning_rate:
    bounds: [0.001, 0.02]
    type: float
  kind:
    choice: [good, nan, dead]
    source: user_defined
target:
  name: loss
  goal: minimize
start:
  - {{learning_rate: 0.01, kind: good}}
  - {{learning_rate: 0.01, kind: nan}}
  - {{learning_rate: 0.01, kind: dead}}
"""


def test_a_mindspore_study_ends_a_nan_and_weights_that_never_move(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", SCRIPT)
    write("study.yaml", STUDY)
    done = misstep_command("tune", "study.yaml", "--trials", "3", "--json")
    assert done.exit == 0, done.err
    good, nan, dead = json.loads(misstep_command("tune", "status", "cells", "--json").out)["trials"]
    assert good["state"] == "complete", good
    assert good["steps"] == 30
    assert (nan["state"], nan["ended"]) == ("pruned", "nan"), nan
    assert "step 5" in nan["why"]
    assert "train.py:22" in nan["why"]
    assert (dead["state"], dead["ended"]) == ("pruned", "dead"), dead
