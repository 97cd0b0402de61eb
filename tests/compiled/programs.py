"""Small compiled trainings with a fault planted in each: six faults, four forms of compile, any backend.

    program("log", "submodule", "inductor")      ─► the text of a script; its planted lines end in `# planted`

Every script makes six steps and prints a digest of its weights. The fault strikes in step 4, `first` in step 1.
"""

from __future__ import annotations

from typing import NamedTuple

FAULTS = ("log", "backward", "hidden", "optimizer", "first", "loss")
FORMS = ("model", "submodule", "net.compile", "function")
BACKENDS = ("inductor", "aot_eager")


class Truth(NamedTuple):
    """What is true of a fault."""

    step: int
    op: str
    phase: str


TRUTHS = {
    "log": Truth(4, "log", "forward"),
    "backward": Truth(4, "sqrt|div|mul", "backward"),
    "hidden": Truth(4, "exp", "forward"),
    "optimizer": Truth(4, "sqrt", "optimizer"),
    "first": Truth(1, "log", "forward"),
    "loss": Truth(4, "log", "loss"),
}

_BODIES = {
    "log": "return torch.log(h + 3 - shift)  # planted",
    "first": "return torch.log(h + 3 - shift)  # planted",
    "backward": "return torch.sqrt(h.square() * scale)  # planted",
    "hidden": "return 1 / (1 + torch.exp(h.abs() * shift))  # planted",
    "optimizer": "return h * 0.5",
    "loss": "return h * 0.5",
}

_PROGRAM = """
import hashlib
import torch
from torch import nn

torch.manual_seed(0)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.b = nn.Linear(16, 4)

    def forward(self, h, shift, scale):
        h = self.b(self.norm(h))
        {body}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.inner = Inner()

    def forward(self, x, shift, scale):
        return self.inner(torch.tanh(self.a(x)), shift, scale)


def criterion(out, shift):
    kept = (out - out.detach() + 2).abs()
    return -torch.log(kept - shift).mean() + out.square().mean(){planted_loss}


net = Model()
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
{compile}

for number in range(1, 7):
    x = torch.randn(16, 8)
    struck = number == {step}
    shift = torch.tensor({shift} if struck else 0.0)
    scale = torch.tensor(0.0 if struck else 1.0)
    miss = torch.tensor({miss} if struck else 0.0)
    {call}
    optimizer.zero_grad()
    loss.backward()
    if struck and {optimizer}:
        for state in optimizer.state.values():
            state["exp_avg_sq"].sub_(10)
    optimizer.step(){planted_step}

print("weights", hashlib.sha1(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest())
"""

_COMPILED = {
    "model": "run = torch.compile(net, backend={backend!r})",
    "submodule": "net.inner = torch.compile(net.inner, backend={backend!r})\nrun = net",
    "net.compile": "net.compile(backend={backend!r})\nrun = net",
    "function": """
@torch.compile(backend={backend!r})
def run(x, shift, scale, miss):
    return {criterion}
""",
}


def program(fault: str, form: str, backend: str) -> str:
    """The script."""
    compile = _COMPILED[form]
    if form == "function":
        compile = compile.replace("{criterion}", "criterion(net(x, shift, scale), miss)")
        call = "loss = run(x, shift, scale, miss)"
    else:
        call = "loss = criterion(run(x, shift, scale), miss)"
        if fault == "loss":
            compile += "\ncriterion = torch.compile(criterion, backend={backend!r})"
    return _PROGRAM.format(
        body=_BODIES[fault],
        planted_loss="  # planted" if fault == "loss" else "",
        planted_step="  # planted" if fault == "optimizer" else "",
        compile=compile.format(backend=backend),
        step=TRUTHS[fault].step,
        shift=1e3 if fault in ("log", "first", "hidden") else 0.0,
        miss=10.0 if fault == "loss" else 0.0,
        call=call,
        optimizer=fault == "optimizer",
    )
