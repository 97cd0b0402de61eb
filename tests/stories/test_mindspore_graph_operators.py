"""Graph mode, operator by operator: each is read from the files that are its own, and no other is blamed for it."""

from __future__ import annotations

import json
import sys

import pytest
from story import RunCommand, RunStory, Write

from misstep.core.address import Address
from misstep.sentences.text import said

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

CONVOLUTIONS = """
    import mindspore as ms, numpy as np
    from mindspore import nn, ops

    {before}
    ms.set_context(mode=ms.GRAPH_MODE)

    class Block(nn.Cell):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3), nn.BatchNorm2d(outputs)
            self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3), nn.BatchNorm2d(outputs)
            self.down = nn.Conv2d(inputs, outputs, 1)

        def construct(self, x):
            y = self.bn1(self.conv1(x))
            y = self.conv2(y)  # planted
            return ops.tanh(self.bn2(y) + self.down(x))

    net, rng = nn.SequentialCell(Block(3, 4), Block(4, 4)).set_train(), np.random.default_rng(0)
    for parameter in net.trainable_params():
        if parameter.ndim > 1:
            parameter.set_data(ms.Tensor(rng.standard_normal(parameter.shape).astype(np.float32) * 0.1))
    {fault}
    x = ms.Tensor(rng.standard_normal((4, 3, 4, 4)).astype(np.float32))
    labels = ms.Tensor(rng.integers(0, 64, 4).astype(np.int32))
    loss_of, optimizer = nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9)

    def forward(x, labels):
        return loss_of(ops.flatten(net(x)){after}, labels)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    for number in range(2):
        loss, gradients = differentiate(x, labels)
        optimizer(gradients)
    print(loss)
"""

DIRTY = """
    memory = [ops.full((4**power,), float("nan"), dtype=ms.float32) for power in range(1, 7) for _ in range(8)]
    [one.asnumpy() for one in memory]
    del memory
"""
"""BatchNorm never writes two of its outputs: they hold what lay in that memory."""

OVERFLOW = """
    net[1].bn1.gamma.asnumpy()[...] = 1e-30
    net[1].bn1.beta.asnumpy()[...] = 0
    net[1].conv2.weight.asnumpy()[...] *= 1e30
"""
"""The second convolution is given 1e-30 and multiplies by 1e29: only its derivative is out of range."""


def script(*, before: str = "", fault: str = "", after: str = "") -> str:
    return CONVOLUTIONS.format(before=before.strip(), fault=fault.strip(), after=after)


def test_every_operator_was_given_what_its_makers_made_and_garbage_is_no_finding(run_story: RunStory) -> None:
    result = run_story(script(before=DIRTY), "--level", "op")
    assert result.exit == 0, result.err
    run = result.run
    graph = run.graph()
    rows = {str(Address(a.node, a.role, a.slot)): stats for a, stats in run.step_rows(2) if a.call == 1}
    seen = set()
    for edge in graph.edges:
        made, given = (graph.nodes[one].name for one in (edge.source, edge.target))
        made = rows.get(str(Address(made, "output", edge.source_slot)))
        given_row = rows.get(str(Address(given, "input", edge.target_slot)))
        if made is not None and given_row is not None:
            # A view of it may have another shape.
            assert (made.min, made.max, made.l2) == (given_row.min, given_row.max, given_row.l2), given
            seen.add(graph.nodes[edge.target].type)
    assert {"Conv2DBackpropInput", "Conv2DBackpropFilter", "BatchNormGrad", "AddN", "ReduceSum"} <= seen
    assert list(run.hits()) == []


def test_a_gradient_born_in_a_convolution_is_not_blamed_on_the_batch_norm_that_is_given_it(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(script(fault=OVERFLOW, after=" * 1e15"), "--level", "op")
    assert result.exit == 0, result.err
    verdict = json.loads(misstep_command("show", "last", "--json").out)["verdict"]
    assert (verdict["step"], verdict["phase"], verdict["op"]) == (1, "backward", "Conv2DBackpropInput")
    assert verdict["source"]["code"] == "y = self.conv2(y)  # planted"


FROZEN = """
    import mindspore as ms, numpy as np
    from mindspore import nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2, self.scale = nn.Dense(8, 16), nn.Dense(16, 4), 1.0

        def construct(self, x):
            x = self.fc1(x)
            x = ops.tanh(x * self.scale)  # compiled with the scale of the first step
            return self.fc2(x)

    net, rng = Net().set_train(), np.random.default_rng(0)
    x, labels = ms.Tensor(rng.standard_normal((4, 8)).astype(np.float32)), ms.Tensor(np.arange(4).astype(np.int32))
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer).set_train()
    for number in (1, 2, 3):
        net.scale = 1.0 if number < 3 else 3.0
        step(x, labels)
"""


@pytest.mark.parametrize("level", ["op", "module"])
def test_where_the_modes_part_is_named_when_the_step_was_dumped_else_how_to_learn_it(
    level: str, write: Write, misstep_command: RunCommand
) -> None:
    write("train.py", FROZEN)
    asked = {"MISSTEP_PYNATIVE": "2:3"}
    result = misstep_command("run", "--level", level, sys.executable, "train.py", environment=asked)
    assert result.exit == 0, result.err
    agreed, differs = result.run.events("modes")
    assert agreed.facts["text"].startswith("step 2 ran in PyNative too: the loss agrees with graph mode (")
    (finding,) = [one for one in result.run.findings if one.rule == "mindspore.modes_differ"]
    assert "differ" not in said(finding.advice, "zh")
    if level == "op":
        line = "train.py:14 `x = ops.tanh(x * self.scale)  # compiled with the scale of the first step`"
        assert differs.facts["text"].endswith(f"; first different output of Net/Tanh, {line}")
        (output,) = finding.evidence
        assert output.endswith("_backbone-Net/Tanh-op0:output@3")
        assert finding.command == f"misstep show {result.run.path.name} '{output}'"
    else:
        assert differs.facts["text"].endswith(" in PyNative")
        assert finding.command == "MISSTEP_PYNATIVE=3 misstep run --level op --steps 3 …"
