"""Every condition, asked of a training that runs: one network where each finds what it looks for, and where not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from livestory import Live

import misstep
from misstep.core.watching.conditions import CONDITIONS

pytestmark = pytest.mark.story

ALL_KINDS = """
import torch

torch.manual_seed(0)

class Log(torch.nn.Module):
    def forward(self, x):
        return torch.log(-1 - x.abs())

class Times(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.healthy = torch.nn.Linear(8, 8)
        self.frozen = torch.nn.Linear(8, 8)
        self.wild = torch.nn.Linear(8, 8)
        self.bad = torch.nn.Linear(8, 8)
        self.vanishing = torch.nn.Linear(8, 8)
        self.exploding = torch.nn.Linear(8, 8)
        self.dead = torch.nn.ReLU()
        self.large = Times(1e6)
        self.small = Times(1e-12)
        self.log = Log()
        self.after_log = Times(2.0)
        self.saturated = torch.nn.Tanh()
        with torch.no_grad():
            self.frozen.weight.zero_()
            self.frozen.bias.fill_(50.0)
            self.bad.weight[0, 0] = float("nan")
            self.wild.weight.fill_(1e-3)

    def forward(self, x, sign):
        y = self.healthy(x)
        kinds = [
            y,
            self.frozen(x),
            self.wild(x) * sign,  # to and fro
            self.bad(x).pow(2),
            self.small(self.vanishing(x)),
            self.large(self.exploding(x)),
            self.dead(-y.abs()),
            self.after_log(self.log(y)),
            self.saturated(100 + y),
        ]
        return sum(kind.sum() for kind in kinds)

model = Network()
optimizer = torch.optim.SGD(
    [
        {"params": [*model.healthy.parameters(), *model.vanishing.parameters()]},
        {"params": [*model.frozen.parameters(), *model.bad.parameters(), *model.exploding.parameters()], "lr": 0.0},
        {"params": model.wild.parameters(), "lr": 10.0},
    ],
    lr=1e-3,
)
sign = 1
while True:
    sign = -sign
    loss = model(torch.rand(4, 8), sign)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

ASKED: dict[str, tuple[dict[str, Any], str, str]] = {
    "weight_overflow": ({}, "bad.weight:param", "healthy.*:param"),
    "weight_too_large": ({"abs_mean_gt": 10.0}, "frozen.bias:param", "healthy.*:param"),
    "weight_too_small": ({"abs_mean_lt": 1e-9}, "frozen.weight:param", "healthy.*:param"),
    "weight_not_changed": ({}, "frozen.*:param", "wild.*:param"),
    "weight_change_too_large": ({}, "wild.weight:param", "frozen.bias:param"),
    "weight_change_too_small": ({}, "frozen.bias:param", "wild.weight:param"),
    "gradient_vanishing": ({"abs_mean_lt": 1e-9}, "vanishing.weight:grad", "healthy.weight:grad"),
    "gradient_too_large": ({"abs_mean_gt": 1e4}, "exploding.weight:grad", "healthy.weight:grad"),
    "gradient_exploding": ({}, "bad.weight:grad", "healthy.weight:grad"),
    "tensor_overflow": ({}, "bad:output", "healthy:output"),
    "operator_overflow": ({}, "log:output", "after_log:output"),
    "tensor_too_large": ({"abs_mean_gt": 1e4}, "large:output", "healthy:output"),
    "tensor_too_small": ({"max_lt": 1e-9}, "small:output", "large:output"),
    "tensor_all_zero": ({}, "dead:output", "healthy:output"),
    "activation_range": (
        {"range_start_inclusive": 0.999, "range_end_inclusive": 1.0, "range_percentage_gt": 90.0},
        "saturated:output",
        "healthy:output",
    ),
    "tensor_range": ({"max_min_lt": 1e-6}, "dead:output", "healthy:output"),
}
"""By condition: its parameters, where it hits in this network, and where it does not. `after_log` is bad too, but what
it was given was bad already."""

INITIAL = ("weight_initialization", "frozen.weight:param", "healthy.*:param")
"""Asked of the weights before the first step."""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.end()


def test_every_condition_hits_where_it_should_and_nowhere_else(live: Live):
    assert {*ASKED, INITIAL[0]} == set(CONDITIONS)
    live.train(ALL_KINDS, pause_at_start=1, recommended=0)
    live.debugger()
    with misstep.connect("try", directory=str(live.base)) as debug:
        debug.wait("paused")
        there, elsewhere = (debug.watch(INITIAL[0], on=on, then="note") for on in INITIAL[1:])
        debug.recheck()
        assert counts(debug) == {there.id: 1}
        debug.unwatch(there.id)
        debug.unwatch(elsewhere.id)

        debug.go()
        debug.wait_step(2)
        hitting, silent = {}, {}
        for condition, (parameters, there, elsewhere) in ASKED.items():
            hitting[debug.watch(condition, on=there, then="note", **parameters).id] = condition
            silent[debug.watch(condition, on=elsewhere, then="note", **parameters).id] = condition
        assert all(view.tensors for view in debug.watchpoints()), "a pattern fits nothing"
        debug.wait_step(debug.state.step + 3)
        debug.pause()
        debug.wait("paused")

        found = counts(debug)
        assert [condition for id, condition in hitting.items() if not found.get(id)] == []
        assert [condition for id, condition in silent.items() if found.get(id)] == []
        for hit in debug.hit_list(limit=1000).hits:
            if hit.watchpoint in hitting:
                assert hit.condition == hitting[hit.watchpoint]
                assert hit.reason
                assert all(reading.hit for reading in hit.readings if reading.parameter in ASKED[hit.condition][0])


def counts(debug: Any) -> dict[int, int]:
    """Hits by watchpoint that say yes; those that could not be answered yet (no previous value) say neither."""
    found: dict[int, int] = {}
    for hit in debug.hit_list(limit=5000).hits:
        if not set(hit.errors) & {"no_previous", "no_value"}:
            found[hit.watchpoint] = found.get(hit.watchpoint, 0) + 1
    return found
