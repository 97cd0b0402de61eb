"""After the first NaN every weight is NaN: whatever they make is no new origin."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import misstep


def test_only_the_step_of_the_first_bad_value_has_an_origin(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with misstep.attach(model, optimizer, dir=str(tmp_path), name="births", level="module"):
        for step in range(1, 5):
            x = torch.randn(16, 4) * (1e30 if step == 2 else 1.0)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    hits = misstep.open_run("births", tmp_path).hits()
    assert {hit.address.step for hit in hits} == {2, 3, 4}
    assert {hit.address.step for hit in hits if hit.birth == "origin"} == {2}


def test_a_weight_that_stays_bad_under_finite_gradients_is_no_new_origin(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight[0, 0] = float("nan")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with misstep.attach(model, optimizer, dir=str(tmp_path), name="stays", level="module"):
        for _ in range(3):
            optimizer.zero_grad()
            model.weight.square().nan_to_num(0.0).sum().backward()
            model.weight.grad.zero_()
            optimizer.step()
    run = misstep.open_run("stays", tmp_path)
    assert run.verdict is not None
    assert (run.verdict.step, run.verdict.phase, run.verdict.node) == (0, "input", "weight")
    steps = {hit.address.step for hit in run.hits() if hit.address.role == "param"}
    assert steps == {0, 1, 2, 3}
    assert [str(hit.address) for hit in run.hits() if hit.birth == "origin"] == []
