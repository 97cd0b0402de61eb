"""A MindSpore user's afternoon in graph mode: the node, the user's line, and nothing left lying around."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from story import Result, RunCommand, RunStory, Write

from misstep.adapters.mindspore.graph.dump_request import VARIABLE, dump_config
from misstep.core.address import Address

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

TRAIN = """
    import hashlib
    import mindspore as ms, numpy as np
    from mindspore import nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1, self.act, self.fc2 = nn.Dense(8, 16), nn.{act}(), nn.Dense(16, 4)

        def construct(self, x):
            x = self.fc1(x)
            {fault}
            return self.fc2(self.act(x))

    net, rng = Net(), np.random.default_rng(0)
    for parameter in net.trainable_params():
        parameter.set_data(ms.Tensor(rng.standard_normal(parameter.shape).astype(np.float32) * 0.1))
    x, y = ms.Tensor(rng.standard_normal((4, 8)).astype(np.float32)), ms.Tensor(np.ones((4, 4), np.float32))
    optimizer, loss_fn = nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.MSELoss()
    optimizer.learning_rate.asnumpy()[...] = {rate}
    {style}
    for number in range(4):
        loss = step()
    digest = hashlib.md5(b"".join(p.asnumpy().tobytes() for p in net.trainable_params())).hexdigest()
    print(loss.asnumpy().tobytes().hex(), digest)
"""

STYLES = {
    "TrainOneStepCell": """
    network = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer).set_train()
    def step():
        return network(x, y)
    """,
    "functional": """
    def forward(x, y):
        return loss_fn(net(x), y)
    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    def step():
        loss, gradients = differentiate(x, y)
        optimizer(gradients)
        return loss
    """,
}

LOG = "x = ops.log(x)  # planted"
SQRT = "x = x + ops.sqrt(ops.relu(x) * 0)  # planted"


def script(fault: str = "", *, style: str = "TrainOneStepCell", act: str = "Tanh", rate: str = "0.1") -> str:
    return TRAIN.format(fault=fault or "pass", style=STYLES[style].strip(), act=act, rate=rate)


def verdict_of(misstep_command: RunCommand) -> dict:
    shown = misstep_command("show", "last", "--json")
    assert shown.exit == 0, shown.err
    return json.loads(shown.out)["verdict"]


def files_of(result: Result) -> list[str]:
    return sorted({path.name for path in result.run.path.rglob("*")} - {"modules.jsonl", "recorder.ring"})


@pytest.mark.parametrize("style", STYLES)
def test_log_of_a_negative_is_named_by_node_and_line(
    style: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(script(LOG, style=style), "--level", "op")
    assert result.exit == 0, result.err
    verdict = verdict_of(misstep_command)
    assert (verdict["step"], verdict["phase"], verdict["kind"]) == (1, "forward", "nan")
    assert (verdict["op"], verdict["precision"]) == ("Log", "operator")
    assert verdict["node"].endswith("/Log-op0")
    assert verdict["source"]["file"] == "train.py"
    assert verdict["source"]["code"] == LOG
    assert all(fact.get("nan", 0) == 0 for fact in verdict["inputs"])


@pytest.mark.parametrize("style", STYLES)
def test_with_only_the_guard_a_bad_step_is_run_in_pynative_and_named_by_operator_and_line(
    style: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(script(LOG, style=style), "--level", "guard")
    assert result.exit == 0, result.err
    verdict = verdict_of(misstep_command)
    assert (verdict["step"], verdict["phase"], verdict["op"], verdict["precision"]) == (1, "forward", "Log", "operator")
    assert (verdict["source"]["file"], verdict["source"]["code"]) == ("train.py", LOG)
    assert verdict["exact"].startswith("in PyNative: ")
    (modes,) = result.run.events("modes")
    assert modes.facts["agree"] is True
    # The guard asks MindSpore for no graphs and no data.
    assert not [path for path in result.run.path.rglob("*") if path.suffix in (".ir", ".npy")]


@pytest.mark.parametrize("style", STYLES)
def test_a_bad_derivative_is_named_by_the_line_of_its_forward(
    style: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(script(SQRT, style=style), "--level", "op")
    assert result.exit == 0, result.err
    verdict = verdict_of(misstep_command)
    assert (verdict["step"], verdict["phase"], verdict["op"]) == (1, "backward", "SqrtGrad")
    assert verdict["source"]["code"] == SQRT
    assert verdict["precision"] == "operator"
    node = result.run.graph().node(verdict["node"])
    assert node is not None
    assert node.forward.endswith("/Sqrt-op0")


def test_a_nan_that_relu_hides_is_told_with_who_hid_it(run_story: RunStory, misstep_command: RunCommand) -> None:
    run_story(script(LOG, act="ReLU"), "--level", "op")
    verdict = verdict_of(misstep_command)
    assert (verdict["op"], verdict["source"]["code"]) == ("Log", LOG)
    assert "ReLU-op0 hides it" in verdict["note"]


def test_an_optimizer_that_writes_nan_is_blamed(run_story: RunStory, misstep_command: RunCommand) -> None:
    run_story(script(rate="np.nan"), "--level", "op")
    verdict = verdict_of(misstep_command)
    assert (verdict["step"], verdict["phase"]) == (1, "optimizer")


def test_every_node_of_a_chosen_step_has_rows_in_execution_order_and_raw_files_are_gone(run_story: RunStory) -> None:
    result = run_story(script(), "--level", "op", "--steps", "2:3")
    run = result.run
    ours = ["facts.jsonl", "graph.jsonl", "journal.jsonl", "rank-0", "run.json", "stats.bin", "trace.bin"]
    assert files_of(result) == ours
    assert [step.captured for step in run.steps() if step.number] == ["guard", "op", "op", "guard"]
    graph = run.graph()
    operators = [node.name for node in graph.nodes if node.kind == "operator"]
    rows = [address for address, _ in run.step_rows(2)]
    outputs = [address.node for address in rows if address.role == "output"]
    assert outputs == [name for name in operators if name in set(outputs)]
    assert {name.rpartition("/")[2] for name in outputs} >= {"MatMul-op0", "Tanh-op0", "ApplyMomentum-op0"}
    assert not any(address.node in operators for address, _ in run.step_rows(1))
    fc1 = next(node for node in graph.nodes if node.name.endswith("fc1-Dense/MatMul-op0") and node.phase == "forward")
    assert fc1.source is not None
    assert (fc1.source.file, fc1.source.code) == ("train.py", "x = self.fc1(x)")


def test_an_evaluation_between_steps_leaves_no_rows(run_story: RunStory) -> None:
    evaluating = script().replace("loss = step()", "loss = step(); net(x)")
    result = run_story(evaluating, "--level", "op", "--steps", "2:3")
    assert result.exit == 0, result.err
    second, third = ([replace(a, step=None) for a, _ in result.run.step_rows(number)] for number in (2, 3))
    assert second == third
    assert all(address.call == 1 for address in third)


def test_a_weight_is_shown_as_the_update_left_it_and_as_the_forward_read_it(run_story: RunStory) -> None:
    run = run_story(script(), "--level", "op").run
    rows = {str(Address(a.node, a.role, a.slot)): s for a, s in run.step_rows(2)}
    before = {str(Address(a.node, a.role, a.slot)): s for a, s in run.step_rows(1)}
    read = next(
        s for name, s in rows.items() if name.endswith("fc2-Dense/MatMul-op0:input.1") and "Gradients" not in name
    )
    assert read == before["fc2.weight:param"]
    assert rows["fc2.weight:param"] != before["fc2.weight:param"]
    updated = next(name for name in rows if name.endswith("ApplyMomentum-op0:input.2"))
    assert updated.replace("input.2", "input") not in rows, "what an operator writes in place is no input"


@pytest.mark.slow
def test_training_is_bit_identical_at_every_level(run_story: RunStory) -> None:
    printed = {level: run_story(script(), "--level", level).out for level in ("off", "module", "op")}
    assert len(set(printed.values())) == 1, printed


def test_at_module_level_the_graph_is_known_and_no_tensor_was_dumped(run_story: RunStory) -> None:
    run = run_story(script()).run
    nodes = [node for node in run.graph().nodes if node.kind == "operator"]
    assert any(node.source is not None and node.source.code == "x = self.fc1(x)" for node in nodes)
    assert run.graph().edges
    assert {address.role for address, _ in run.step_rows(2)} == {"loss", "param"}


def test_a_dump_of_the_users_own_is_left_alone_and_read(
    write: Write, misstep_command: RunCommand, folder: Path
) -> None:
    config = write("mine.json", json.dumps(dump_config(folder / "mine", "0")))
    write("train.py", script(LOG))
    result = misstep_command("run", sys.executable, "train.py", environment={VARIABLE: str(config)})
    assert result.exit == 0, result.err
    assert list((folder / "mine" / "rank_0").glob("*/0/0/*.npy"))
    verdict = verdict_of(misstep_command)
    assert (verdict["step"], verdict["op"], verdict["source"]["code"]) == (1, "Log", LOG)


def test_a_run_whose_name_mindspore_refuses_leaves_nothing_elsewhere_either(
    write: Write, misstep_command: RunCommand, folder: Path
) -> None:
    (folder / "tmp").mkdir()
    write("train.py", script() + "\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n")
    given = ("--level", "op", "--steps", "2", "--name", "a.name", sys.executable, "train.py")
    result = misstep_command("run", *given, environment={"TMPDIR": str(folder / "tmp")})
    assert result.exit == 137
    assert [step.captured for step in result.run.steps() if step.number] == ["guard", "op", "guard", "guard"]
    assert not [path for path in (folder / "tmp").rglob("*") if "compiled" in str(path)]
    assert not list(result.run.path.glob("compiled-*"))


def test_a_training_that_is_killed_leaves_no_raw_files(run_story: RunStory) -> None:
    dying = script() + "\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    result = run_story(dying, "--level", "op")
    assert result.exit == 137
    assert not list(result.run.path.glob("compiled-*"))
    assert [step.captured for step in result.run.steps() if step.number] == ["op"] * 4
