"""With only the guard on, a bad step explains itself: it is run again, and operator, line, phase and samples are named."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from story import SECONDS, RunCommand, RunStory, Write, environment_of_a_user

pytestmark = pytest.mark.story

TRAIN = """
    import hashlib
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Reciprocal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient / (x - x)  # planted in backward

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm, self.drop = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.1)

        def forward(self, x, wrong):
            y = self.drop(self.norm(self.fc(x)))
            if wrong:
                {network}
            return y

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(3))
            self.head = nn.Linear(8, 4)

        def forward(self, x, wrong=False):
            for number, block in enumerate(self.blocks):
                x = block(x, wrong and number == 1)
            return self.head(x)

    class Careless(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure=None):
            super().step(closure)
            if wrong:
                weight = self.param_groups[0]["params"][2]
                weight.copy_((weight - weight) / (weight - weight))  # planted

    torch.manual_seed(0)
    net = Net()
    optimizer = {optimizer}
    for number in range(1, 6):
        wrong = number == 4
        x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
        mask = torch.ones(16)
        if wrong:
            {batch}
        out = net(x, wrong)
        loss = F.cross_entropy(out, y)
        if wrong:
            {loss}
        optimizer.zero_grad()
        loss.backward()
        if wrong:
            {update}
        optimizer.step()  # planted in the optimizer
    digest = hashlib.sha256()
    for tensor in [*net.state_dict().values(), torch.get_rng_state()]:
        digest.update(tensor.numpy().tobytes())
    print(digest.hexdigest())
"""

SGD = "torch.optim.SGD(net.parameters(), lr=0.1)"
ADAM = "torch.optim.Adam(net.parameters(), lr=0.1, {})"


@dataclass(frozen=True)
class Fault:
    phase: str
    op: str
    network: str = "pass"
    batch: str = "pass"
    loss: str = "pass"
    update: str = "pass"
    optimizer: str = SGD
    line: str = "# planted"

    def script(self) -> str:
        return TRAIN.format(
            network=self.network, batch=self.batch, loss=self.loss, update=self.update, optimizer=self.optimizer
        )


IN_OPTIMIZER = "# planted in the optimizer"
NO_SECOND_MOMENT = (
    "[s['exp_avg_sq'].zero_() for s in optimizer.state.values()];"
    " net.zero_grad(set_to_none=False); optimizer.param_groups[0]['eps'] = 0"
)
NEGATIVE_SECOND_MOMENT = "[s['exp_avg_sq'].fill_(-1.0) for s in optimizer.state.values()]"
ENDLESS_RATE = "optimizer.param_groups[0]['lr'] = float('inf')"

FAULTS = {
    "log of a negative": Fault("forward", "aten.log", network="y = torch.log(y)  # planted"),
    "root of a negative": Fault("forward", "aten.sqrt", network="y = torch.sqrt(y)  # planted"),
    "exp overflows, hidden by tanh": Fault(
        "forward", "aten.exp", network="y = torch.tanh(torch.exp(y * 1e4))  # planted"
    ),
    "zero by zero": Fault("forward", "aten.div", network="y = (y - y) / (y - y)  # planted"),
    "overflow in half precision": Fault("forward", "aten.mul", network="y = (y.half() * 6e4 * 6e4).float()  # planted"),
    "a row masked out": Fault(
        "forward",
        "aten._softmax",
        network="y = torch.softmax(y.masked_fill(torch.ones_like(y) > 0, -torch.inf), 1)  # planted",
    ),
    "a matrix product overflows": Fault("forward", "aten.mm", network="y = y @ (self.fc.weight * 3e38)  # planted"),
    "root of zero, bad only in backward": Fault("backward", "", network="y = y + torch.sqrt(y - y)  # planted"),
    "where hides a root": Fault(
        "backward", "", network="y = torch.where(y > 0, torch.sqrt(y.abs() * 0), y)  # planted"
    ),
    "arc cosine at one": Fault("backward", "", network="y = y + torch.acos(1 - (y - y))  # planted"),
    "a custom function's backward": Fault(
        "backward", "aten.div", network="y = Reciprocal.apply(y)", line="# planted in backward"
    ),
    "log of zero in the loss": Fault("loss", "aten.log", loss="loss = loss - torch.log(out.sum() * 0)  # planted"),
    "mean over nothing in the loss": Fault(
        "loss", "aten.div", loss="loss = loss + (out.sum() * 0) / (mask.sum() - 16)  # planted"
    ),
    "root of zero in the loss": Fault("backward", "", loss="loss = loss + torch.sqrt(out * 0).sum()  # planted"),
    "NaN in the batch": Fault(
        "input", "aten.addmm", batch="x[3, 2] = torch.nan", line="y = self.drop(self.norm(self.fc(x)))"
    ),
    "Inf in the weights of the samples": Fault(
        "input",
        "",
        batch="mask[5] = torch.inf",
        loss="loss = (F.cross_entropy(out, y, reduction='none') * mask).mean()  # planted",
    ),
    "a learning rate of Inf": Fault("optimizer", "", update=ENDLESS_RATE, line=IN_OPTIMIZER),
    "Adam without eps, foreach": Fault(
        "optimizer", "", update=NO_SECOND_MOMENT, optimizer=ADAM.format("foreach=True"), line=IN_OPTIMIZER
    ),
    "Adam without eps, one by one": Fault(
        "optimizer", "", update=NO_SECOND_MOMENT, optimizer=ADAM.format("foreach=False"), line=IN_OPTIMIZER
    ),
    "Adam with a negative second moment, fused": Fault(
        "optimizer",
        "aten._fused_adam_",
        update=NEGATIVE_SECOND_MOMENT,
        optimizer=ADAM.format("fused=True"),
        line=IN_OPTIMIZER,
    ),
    "an optimizer of one's own": Fault(
        "optimizer", "aten.div", optimizer="Careless(net.parameters(), lr=0.1)", line="# planted"
    ),
}


def shown(misstep_command: RunCommand) -> dict:
    result = misstep_command("show", "last", "--json")
    assert result.exit == 0, result.err
    return json.loads(result.out)


def untouched(folder: Path, script: str = "train.py") -> str:
    """What the same script prints without misstep."""
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=environment_of_a_user(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_by_operator_line_phase_and_step_with_only_the_guard_on(
    name: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    fault = FAULTS[name]
    result = run_story(fault.script(), "--level", "guard")
    assert result.exit == 0, result.err
    verdict = shown(misstep_command)["verdict"]
    assert (verdict["step"], verdict["phase"], verdict["precision"]) == (4, fault.phase, "operator")
    assert not fault.op or verdict["op"] == fault.op
    assert verdict["source"]["file"] == "train.py"
    assert verdict["source"]["code"].endswith(fault.line)
    if fault.phase != "optimizer":
        assert verdict["exact"] == "exact"
    assert result.out == untouched(result.folder)
