"""A user keeps whole tensors of a real training: from its start, from a second terminal, and when something trips."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from livestory import NETWORK, Live
from story import TRAINING, RunCommand, RunStory, Write

from misstep.store.reading.reader import open_run

pytestmark = pytest.mark.story


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.end()


def test_a_step_is_dumped_checked_exported_and_compared(run_story: RunStory, misstep_command: RunCommand) -> None:
    one = run_story(TRAINING + "\ntrain(3)\n", "--name", "one", "--dump", "*@0:2")
    assert one.exit == 0, one.err
    run = open_run(one.folder / "missteps" / "one")
    kept = {str(stored.address) for stored in run.tensors()}
    assert {"0:input@1#0", "0:output@1#0", "2.weight:grad@2#0", "0.weight:param@0#0"} <= kept
    assert not any("@3" in address for address in kept)
    assert run.verify() == []
    x, weight, bias = run.tensor("0:input@1"), run.tensor("0.weight:param@0"), run.tensor("0.bias:param@0")
    np.testing.assert_allclose(run.tensor("0:output@1"), x @ weight.T + bias, rtol=1e-5, atol=1e-6)

    other = run_story(TRAINING + "\ntrain(3)\n", "--name", "other", "--dump", "*@0:2")
    assert other.exit == 0
    assert misstep_command("diff", "missteps/one@2", "missteps/other@2").exit == 0
    changed = misstep_command("diff", "missteps/one@1", "missteps/one@2", "--json", "--write-map", "map.toml")
    assert changed.exit == 3
    assert json.loads(changed.out)["first_difference"]["name"]
    assert "[names]" in (one.folder / "map.toml").read_text()
    assert misstep_command("check", "one", "--watch", "overflow").exit == 0
    assert misstep_command("export", "one@2", "--format", "mindspore", "--to", "dump").exit == 0
    assert misstep_command("check", "dump", "--watch", "abs_mean > 0 on *:output", "--json").exit == 3


def test_every_operator_of_one_step_is_kept_and_the_others_cost_nothing_more(run_story: RunStory) -> None:
    done = run_story(TRAINING + "\ntrain(4)\n", "--dump", "*/*@3")
    assert done.exit == 0, done.err
    run = done.run
    assert {stored.address.step for stored in run.tensors()} == {3}
    assert {step.captured for step in run.steps() if step.number != 3} == {"module"}
    types = {run.graph().node(stored.address.node).type for stored in run.tensors()}  # type: ignore[union-attr]
    assert {"aten.addmm", "aten.tanh", "aten.tanh_backward"} <= types
    assert run.verify() == []


def test_a_loss_that_becomes_nan_leaves_the_tensors_of_that_step(run_story: RunStory) -> None:
    done = run_story(TRAINING + "\ntrain(4, spoil_at=3)\n", "--watch", "overflow on *:loss", "--then", "dump")
    assert done.exit == 0, done.err
    kept = {str(stored.address) for stored in done.run.tensors()}
    assert any(address.startswith("loss:loss@3") for address in kept)


def test_activations_freed_by_torch_and_written_over_in_place_are_told_apart(run_story: RunStory) -> None:
    script = """
import torch
torch.manual_seed(0)
class Spoil(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.log(x - 10) if self.calls == 3 else x
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(inplace=True), Spoil(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(16, 4)).pow(2).mean().backward()
    optimizer.step()
"""
    done = run_story(script, "--watch", "overflow on *:output", "--then", "dump")
    assert done.exit == 0, done.err
    run = done.run
    assert {stored.address.step for stored in run.tensors()} == {2, 3}  # the one before comes along
    assert np.isnan(run.tensor("2:output@3")).any()
    # ReLU wrote over the output of the first layer; it was seen doing so before, so a copy was kept.
    for step in (2, 3):
        assert (run.tensor(f"0:output@{step}") < 0).any()
        assert (run.tensor(f"1:output@{step}") >= 0).all()


def test_a_second_terminal_dumps_the_steps_to_come(live: Live, write: Write) -> None:
    run = live.train(NETWORK + "\nfor _ in range(6):\n    step(torch.randn(4, 8))\n", pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    told = debug.dump("decoder*:output", steps="3:4")
    assert told["dumps"] == ["decoder*:output@3:4"]
    debug.step(2)
    debug.wait("paused")
    assert debug.dump("encoder.*:output")["dumps"] == ["encoder.*:output@3"]
    debug.go()
    assert live.exit() == 0
    kept = [str(stored.address) for stored in open_run(run).tensors()]
    assert kept == ["encoder.0:output@3#0", "encoder.1:output@3#0", "decoder:output@3#0", "decoder:output@4#0"]


def test_mindspores_configuration_works_for_torch(write: Write, misstep_command: RunCommand, folder: Path) -> None:
    common = {
        "dump_mode": 1,
        "path": "/tmp/dump",
        "net_name": "Net",
        "iteration": "0|2",
        "input_output": 2,
        "kernels": ["name-regex(.*tanh.*)"],
        "support_device": [0],
    }
    said = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}
    config = write("dump.json", json.dumps(said))
    write("train.py", TRAINING + "\ntrain(3)\n")
    done = misstep_command("run", sys.executable, "train.py", environment={"MINDSPORE_DUMP_CONFIG": str(config)})
    assert done.exit == 0, done.err
    assert {stored.address.step for stored in done.run.tensors()} == {1, 3}
    assert all("tanh" in stored.address.node.lower() for stored in done.run.tensors())
