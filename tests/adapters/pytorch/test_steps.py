"""What counts as a step, and what is seen of it, for every shape of training loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from misstep.capture.session import Session
from misstep.store.reading.reader import Run, open_run

Watch = Callable[..., Session]


def finished(session: Session) -> Run:
    session.end()
    assert session.run_directory is not None
    return open_run(session.run_directory)


def numbers(run: Run) -> list[int]:
    return [step.number for step in run.steps() if step.number]


def addresses(run: Run, step: int) -> set[str]:
    return {str(address).split("@")[0] for address, _ in run.stats("*", steps=step)}


def train(model: nn.Module, batches: list[Any], loss_of: Callable[[Any], torch.Tensor] = torch.sum) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in batches:
        loss = loss_of(model(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_every_role_of_a_step_is_recorded(watched: Watch) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    session = watched("module")
    train(model, [torch.randn(2, 4) for _ in range(2)])
    run = finished(session)
    assert addresses(run, 2) == {
        "Sequential:input",
        "0:input",
        "0:output",
        "1:input",
        "1:output",
        "Sequential:output",
        "1:grad_output",
        "Sequential:grad_output",
        "0:grad_output",
        "1:grad_input",
        "loss:loss",
        "0.weight:grad",
        "0.bias:grad",
        "0.weight:param",
        "0.bias:param",
    }
    assert addresses(run, 0) == {"0.weight:param", "0.bias:param"}
    assert (run.steps()[-1].learning_rate, run.steps()[-1].optimizer) == (0.01, "SGD")


def test_statistics_are_those_of_the_tensor(watched: Watch) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    session = watched("module")
    batch = torch.randn(5, 4)
    with torch.no_grad():
        expected = model(batch).double()
    train(model, [batch])
    ((_, stats),) = finished(session).stats("Linear:output", steps=1)
    assert stats.mean == pytest.approx(expected.mean().item(), rel=1e-6)
    assert stats.std == pytest.approx(expected.std(correction=0).item(), rel=1e-6)
    assert (stats.min, stats.max) == pytest.approx((expected.min().item(), expected.max().item()), rel=1e-6)
    assert (stats.shape, stats.dtype, stats.count) == ((5, 3), "float32", 15)


def test_two_optimizers_in_turn_are_two_steps_and_after_one_backward_one(watched: Watch) -> None:
    maker, judge = nn.Linear(4, 4), nn.Linear(4, 1)
    both = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=0.2)
    session = watched("module")
    for _ in range(3):
        judge(maker(torch.randn(2, 4))).sum().backward()
        for optimizer in both:
            optimizer.step()
    together = finished(session)
    # The first step ends with the first optimizer: the second was not known yet.
    assert len(numbers(together)) in (3, 4)
    session = watched("module")
    for _ in range(3):
        for optimizer in both:
            optimizer.zero_grad()
            judge(maker(torch.randn(2, 4))).sum().backward()
            optimizer.step()
    in_turn = finished(session)
    assert numbers(in_turn) == [1, 2, 3, 4, 5, 6]
    assert [step.learning_rate for step in in_turn.steps() if step.number][:4] == [0.1, 0.2, 0.1, 0.2]
    assert {node.graph for node in in_turn.graph().nodes if node.kind == "module"} == {"Linear", "Linear_2"}


def test_accumulated_backwards_are_one_step_with_several_calls(watched: Watch) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    session = watched("module")
    for _ in range(2):
        optimizer.zero_grad()
        for _ in range(3):
            model(torch.randn(2, 4)).mean().backward()
        optimizer.step()
    run = finished(session)
    assert numbers(run) == [1, 2]
    assert {"Linear:output", "Linear~2:output", "Linear~3:output"} <= addresses(run, 2)
    assert len(run.step(2).losses) == 3


def test_a_closure_runs_inside_its_step(watched: Watch) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = torch.randn(8, 3), torch.randn(8, 1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    session = watched("module")
    for _ in range(2):
        optimizer.step(closure)
    run = finished(session)
    assert numbers(run) == [1, 2]
    assert "weight:grad" in addresses(run, 1)
    assert "Linear~2:output" in addresses(run, 1)


def test_evaluation_between_steps_leaves_no_rows(watched: Watch) -> None:
    model = nn.Linear(4, 1)
    session = watched("op")
    train(model, [torch.randn(2, 4)])
    with torch.no_grad():
        for _ in range(5):
            model(torch.randn(2, 4))
    train(model, [torch.randn(2, 4)])
    run = finished(session)
    assert "Linear~2:output" not in addresses(run, 2)
    assert numbers(run) == [1, 2]


def test_a_module_called_twice_and_a_shared_weight_keep_their_names(watched: Watch) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.tied = nn.Linear(4, 4, bias=False)
            self.tied.weight = self.fc.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.tied(self.fc(self.fc(x)))

    session = watched("module")
    train(Twice(), [torch.randn(2, 4)])
    seen = addresses(finished(session), 1)
    assert {"fc:output", "fc~2:output", "tied:output", "fc.weight:grad"} <= seen
    assert "tied.weight:grad" not in seen


def test_nested_outputs_have_slots(watched: Watch) -> None:
    @dataclass
    class Out:
        logits: torch.Tensor
        hidden: list[torch.Tensor]

    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor, *, scale: dict[str, torch.Tensor]) -> Out:
            y = self.fc(x) * scale["by"]
            return Out(y, [y + 1, y * 2])

    model = Nested()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    session = watched("module")
    out = model(torch.randn(3, 4), scale={"by": torch.ones(())})
    (out.logits.sum() + out.hidden[1].sum()).backward()
    optimizer.step()
    seen = addresses(finished(session), 1)
    assert {"Nested:output", "Nested:output.1", "Nested:output.2", "Nested:input", "Nested:input.1"} <= seen


def test_an_exception_in_forward_passes_and_is_told(watched: Watch) -> None:
    class Breaks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("no such luck")

    model = nn.Sequential(nn.Linear(2, 2), Breaks())
    session = watched("module")
    with pytest.raises(ValueError, match="no such luck"):
        model(torch.randn(1, 2))
    (told,) = finished(session).events("exception")
    assert (told.facts["type"], told.facts["node"]) == ("ValueError", "1")


def test_in_place_operations_are_seen_before_and_after(watched: Watch) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
    session = watched("module")
    train(model, [torch.full((2, 4), -3.0)])
    run = finished(session)
    ((_, before),) = run.stats("0:output", steps=1)
    ((_, after),) = run.stats("1:output", steps=1)
    assert before.negatives > 0
    assert after.negatives == 0


def test_functional_code_is_seen_at_op_level(watched: Watch) -> None:
    weight = torch.randn(4, 1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    session = watched("op")
    for _ in range(2):
        loss = torch.log1p((torch.ones(2, 4) @ weight).square()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    run = finished(session)
    assert {"script/mm:output", "script/log1p:output", "script/Log1PBackward0/div:output"} <= addresses(run, 2)
    node = run.graph().node("script/log1p")
    assert node is not None
    assert node.source is not None
    assert "torch.log1p" in node.source.code
    assert "weight:grad" in addresses(run, 2)


def test_tensor_subclasses_and_models_without_parameters_are_harmless(watched: Watch) -> None:
    class Tagged(torch.Tensor):
        pass

    model = nn.Sequential(nn.Identity(), nn.Linear(4, 2))
    session = watched("op")
    train(model, [torch.randn(2, 4).as_subclass(Tagged)])
    nn.ReLU()(torch.randn(3))
    train(model, [torch.randn(2, 4).to_sparse().to_dense()])
    run = finished(session)
    assert numbers(run) == [1, 2]
    assert "Sequential:input" in addresses(run, 1)


def test_parts_of_a_network_called_one_by_one_keep_their_paths(watched: Watch) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = nn.Linear(4, 3), nn.Linear(3, 1)

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    session = watched("module")
    net.decoder(net.encoder(torch.randn(2, 4))).sum().backward()
    optimizer.step()
    assert {"encoder:output", "decoder:output", "encoder.weight:grad"} <= addresses(finished(session), 1)


def test_a_gradient_scaler_that_skips_is_no_step_and_no_alarm(watched: Watch) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    session = watched("module")
    for _ in range(3):
        loss = (model(torch.ones(2, 4)) * 1e4).sum()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update(2.0**-10 if scaler.get_scale() > 1e30 else None)
    run = finished(session)
    assert numbers(run) == [1, 2]
    assert len(run.events("skipped")) == 1
    assert run.verdict is None


def test_the_accelerators_road_gives_the_same_numbers(watched: Watch) -> None:
    def record(**settings: Any) -> dict[str, Any]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
        session = watched("module", **settings)
        train(model, [torch.randn(3, 6)])
        return {str(address): stats for address, stats in finished(session).stats("*", steps=1)}

    near, far = record(), record(force_queue=True)
    assert near.keys() == far.keys()
    for name in near:
        for field in ("count", "nan", "zeros", "negatives", "min", "max", "mean", "abs_mean", "l2", "std"):
            assert getattr(far[name], field) == pytest.approx(getattr(near[name], field), rel=1e-6, abs=1e-9), name


def test_memory_does_not_grow_with_the_number_of_steps(watched: Watch) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(2, 2)
    watched("module", stats_mb=1)

    def megabytes_after(steps: int) -> float:
        for _ in range(steps):
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    settled = megabytes_after(1000)
    # A hundred bytes kept of each step would show as one megabyte.
    assert megabytes_after(9000) - settled < 1.0


def test_a_forked_child_is_inert(watched: Watch) -> None:
    loader = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=2, num_workers=1)
    model = nn.Linear(4, 1)
    session = watched("module")
    train(model, list(loader))
    run = finished(session)
    assert numbers(run) == [1, 2, 3, 4]
    assert run.ranks == (0,)
    assert np.isfinite(run.steps()[-1].loss or np.nan)


def test_memory_that_nobody_wrote_yet_is_no_evidence(watched: Watch) -> None:
    class Fills(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.full((64,), float("nan"))  # freed at once: the next allocation of this size finds it
            noise = torch.empty(64).bernoulli_(0.5)
            return self.fc(x) * noise[:4]

    session = watched("op")
    train(Fills(), [torch.randn(2, 4) for _ in range(3)])
    run = finished(session)
    assert run.verdict is None
    assert not [hit for hit in run.hits() if "bernoulli_:input" in str(hit.address)]
