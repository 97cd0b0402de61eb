"""An operator-level dump tells what every operator was given, whatever names and views the memory had before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from misstep.adapters.registry import adapter_named
from misstep.capture.session import Session
from misstep.settings import Settings
from misstep.store.reading.reader import Run, open_run

WATCHED = ("mm", "add", "mul", "relu", "cat", "sum")


class Witness(TorchDispatchMode):
    """Copies what operators are given, before they run."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, list[list[np.ndarray[Any, Any]]]] = {name: [] for name in WATCHED}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in self.given:
            flat = [item for one in args for item in (one if isinstance(one, list) else [one])]
            self.given[name].append([t.detach().clone().numpy() for t in flat if isinstance(t, torch.Tensor)])
        return func(*args, **(kwargs or {}))


class Views(torch.nn.Module):
    """Halves of equal size, a transpose of a square, a whole that was written to through a part."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(6, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x @ self.weight)
        first, second = y.chunk(2)
        z = torch.cat([second * 2, first + second])
        z[1:3] += 1.0
        return (z.t() @ z + z) * z.reshape(6, 6)


def dumped(folder: Path, **settings: Any) -> tuple[Run, Witness]:
    torch.manual_seed(3)
    model = Views()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"dir": str(folder), "recommended": False, "strict": True, "replay": False, **settings}
    with Session(Settings(given)) as session:
        adapter = adapter_named("pytorch")
        session.use(adapter)
        adapter.attach(session)
        with Witness() as witness:
            model(torch.randn(6, 6)).sum().backward()
            optimizer.step()
        path = session.run_directory
    return open_run(path or ""), witness


def inputs_of(run: Run, name: str) -> list[list[np.ndarray[Any, Any]]]:
    """By call of an operator, in the order they came: its inputs by slot."""
    calls: dict[tuple[str, int], dict[int, np.ndarray[Any, Any]]] = {}
    for stored in run.tensors():
        node = run.graph().node(stored.address.node)
        assert node is not None
        if node.type == f"aten.{name}" and stored.address.role == "input":
            call = calls.setdefault((stored.address.node, stored.address.call), {})
            call[stored.address.slot] = run.tensor(stored.address)
    return [[call[slot] for slot in sorted(call)] for call in calls.values()]


def test_every_input_of_every_operator_is_what_the_operator_was_given(tmp_path: Path) -> None:
    run, witness = dumped(tmp_path, dump="*/*")
    for name in WATCHED:
        found = inputs_of(run, name)
        assert [len(call) for call in found] == [len(call) for call in witness.given[name]], name
        for ours, theirs in zip(found, witness.given[name], strict=True):
            for got, want in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(got, want, err_msg=name)
    places = [stored.offset for stored in run.tensors()]
    assert len(set(places)) < 0.7 * len(places)  # second names, not second bytes


def test_inputs_nobody_asked_for_are_not_named(tmp_path: Path) -> None:
    run, _ = dumped(tmp_path, dump="*/*:output")
    assert {stored.address.role for stored in run.tensors()} == {"output"}
