"""Scripts that look at their own loss and leave the step: by sys.exit, by an exception, or with `continue`.

No update ends such a step, and its verdict is the one thing the user came for.
"""

from __future__ import annotations

import pytest
from story import RunStory

TORCH = """
import sys, torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

def main():
    for step in range(1, 6):
        y = net(torch.randn(16, 4))
        if step == 3:
            y = torch.log(y - 100)   # the line
        loss = y.pow(2).mean()
        LEAVE
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

main()
"""

MINDSPORE = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops
ms.set_seed(0)
net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.01)
state = {"step": 0}

def forward(x):
    y = net(x)
    if state["step"] == 3:
        y = ops.log(y - 100)   # the line
    return y.pow(2).mean()

differentiate = ms.value_and_grad(forward, None, net.trainable_params())
rng = np.random.default_rng(0)

def main():
    for step in range(1, 6):
        state["step"] = step
        loss, gradients = differentiate(ms.Tensor(rng.standard_normal((16, 4)), ms.float32))
        LEAVE
        optimizer(gradients)

main()
"""

LEAVING = {
    "exit": "if bad(loss): sys.exit(4)",
    "exception": "if bad(loss): raise RuntimeError('the loss is not finite')",
    "continue": "if bad(loss): continue",
    "return": "if bad(loss): return",
}
BAD = {
    "torch": "def bad(loss): return bool(torch.isnan(loss))",
    "mindspore": "def bad(loss): return bool(np.isnan(loss.asnumpy()))",
}


def script(framework: str, way: str) -> str:
    text = (TORCH if framework == "torch" else MINDSPORE).replace("LEAVE", LEAVING[way])
    return text.replace("\ndef main", f"\n{BAD[framework]}\n\ndef main")


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if "# the line" in line)


@pytest.mark.parametrize("level", ["guard", "module", "op"])
@pytest.mark.parametrize("way", ["exit", "exception", "continue", "return"])
def test_a_torch_script_that_leaves_a_step_with_a_nan_loss_gets_its_verdict(
    run_story: RunStory, way: str, level: str
) -> None:
    text = script("torch", way)
    result = run_story(text, "--level", level)
    assert result.exit == {"exit": 4, "exception": 1}.get(way, 0), result.err
    run, verdict = result.run, result.run.verdict
    assert verdict is not None, result.err
    assert (verdict.step, verdict.kind, verdict.precision) == (3, "nan", "operator")
    assert verdict.source is not None
    assert verdict.source.line == line_of(text)
    assert [step.number for step in run.steps() if step.left] == [3]
    assert [step.number for step in run.steps() if step.number][-1] == (5 if way == "continue" else 3)
    assert "no NaN or Inf was seen" not in result.err


@pytest.mark.parametrize(("way", "level"), [("exit", "guard"), ("continue", "op"), ("exception", "module")])
def test_a_mindspore_script_that_leaves_a_step_with_a_nan_loss_gets_its_verdict(
    run_story: RunStory, way: str, level: str
) -> None:
    text = script("mindspore", way)
    result = run_story(text, "--level", level)
    assert result.exit == {"exit": 4, "exception": 1}.get(way, 0), result.err
    run, verdict = result.run, result.run.verdict
    assert verdict is not None, result.err
    assert (verdict.step, verdict.kind, verdict.precision) == (3, "nan", "operator")
    assert verdict.source is not None
    assert verdict.source.line == line_of(text)
    assert [step.number for step in run.steps() if step.left] == [3]
    assert [step.number for step in run.steps() if step.number][-1] == (5 if way == "continue" else 3)
    assert "no NaN or Inf was seen" not in result.err


def test_a_finite_step_left_by_the_end_of_the_script_is_recorded_and_no_fault(run_story: RunStory) -> None:
    result = run_story(
        script("torch", "exit")
        .replace("optimizer.step()", "step < 5 and optimizer.step()")
        .replace("step == 3", "False")
    )
    assert result.exit == 0
    assert [(step.number, step.left) for step in result.run.steps() if step.number] == [
        (1, False), (2, False), (3, False), (4, False), (5, True)
    ]  # fmt: skip
    assert result.run.verdict is None
    assert "misstep: no NaN or Inf was seen in 5 steps." in result.err


SCALED = """
import numpy as np
import mindspore as ms
from mindspore import nn, ops, amp
ms.set_seed(0)
net = nn.Dense(4, 1)
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.01)
scaler = amp.DynamicLossScaler(2.0 ** 16, 2, 50)

def forward(x):
    return scaler.scale((net(x) * 1e38).pow(2).mean())

differentiate = ms.value_and_grad(forward, None, net.trainable_params())

def train(x):
    loss, gradients = differentiate(x)
    fine = amp.all_finite(gradients)
    if fine:
        optimizer(scaler.unscale(gradients))
    scaler.adjust(fine)
    return loss

for step in range(8):
    train(ms.Tensor(np.ones((2, 4)), ms.float32))
"""


@pytest.mark.parametrize("level", ["guard", "op"])
def test_every_update_that_a_mindspore_loss_scale_skips_is_counted(run_story: RunStory, level: str) -> None:
    result = run_story(SCALED, "--level", level)
    assert result.exit == 0, result.err
    assert len(result.run.events("skipped")) == 8
    assert "no NaN or Inf was seen" not in result.err


TORCH_SCALED = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")

def train():
    optimizer.zero_grad()
    loss = (net(torch.ones(2, 4)) * 1e38).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

for step in range(8):
    train()
"""


@pytest.mark.parametrize("level", ["guard", "op"])
def test_every_update_that_a_torch_gradient_scaler_skips_is_counted(run_story: RunStory, level: str) -> None:
    result = run_story(TORCH_SCALED, "--level", level)
    assert result.exit == 0, result.err
    assert len(result.run.events("skipped")) == 8
    assert "no NaN or Inf was seen" not in result.err
