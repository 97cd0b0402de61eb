"""A step of a MindSpore training in a file, run again in a fresh process: bit for bit, with the operator named."""

from __future__ import annotations

import json
import sys

import pytest
from story import RunCommand, RunStory, Write

from misstep.store.reading.reader import open_run

pytestmark = [pytest.mark.story, pytest.mark.slow]

TRAIN = """
    import sys
    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.body = nn.SequentialCell(nn.Dense(8, 8), nn.BatchNorm1d(8), nn.Dropout(p=0.2))
            self.head, self.calls = nn.Dense(8, 4), 0

        def construct(self, x):
            self.calls += 1
            noise = float(np.random.standard_normal()) / self.calls
            return self.head(self.body(ops.log(x))) + noise  # planted

    style, seed = sys.argv[1], {seed}
    ms.set_seed(seed + 1)
    np.random.seed(seed)
    rng = np.random.default_rng(seed)
    net = Net().set_train()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    importance = ms.Tensor(rng.random(4).astype(np.float32))

    def forward(x, y):
        return (((net(x) - y) * importance) ** 2).mean()

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    one_step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    for number in range(1, 7):
        x = rng.random((16 - seed, 8)).astype(np.float32) + 0.1
        if number == 5:
            x[7, 3] = -1.0
        x, y = ms.Tensor(x), ms.Tensor(rng.random((16 - seed, 4)).astype(np.float32))
        if style == "functional":
            loss, gradients = differentiate(x, y)
            optimizer(gradients)
        else:
            one_step(x, y)
    print("trained")
"""


@pytest.mark.parametrize("style", ["functional", "one step"])
def test_a_capsule_proves_bit_equality_in_a_fresh_process_whatever_its_seed(
    style: str, run_story: RunStory, misstep_command: RunCommand, write: Write
) -> None:
    first = run_story(TRAIN.format(seed=0), "--level", "guard", args=[style])
    assert first.exit == 0, first.err
    assert first.run.verdict is not None
    capsule = first.run.path / "rank-0" / "capsules" / "step-5.capsule"
    write("train.py", TRAIN.format(seed=3))
    again = misstep_command("run", "--replay", str(capsule), "--name", "again", sys.executable, "train.py", style)
    assert (again.exit, again.out) == (0, ""), again.err  # it ended after the one step
    run = open_run(first.folder / "missteps" / "again")
    (event,) = run.events("replay")
    assert (event.facts["step"], event.facts["exact"]) == (5, "exact")
    assert run.verdict is not None
    assert (run.verdict.step, run.verdict.op, run.verdict.precision) == (5, "Log", "operator")
    assert run.verdict.source is not None
    assert run.verdict.source.code.endswith("# planted")


def test_a_chosen_step_is_kept_and_its_update_is_run_again_too(misstep_command: RunCommand, write: Write) -> None:
    write("train.py", TRAIN.format(seed=0).replace("x[7, 3] = -1.0", "optimizer.learning_rate.asnumpy()[...] = np.nan"))
    command = ("run", "--level", "guard", "--name", "fox", sys.executable, "train.py", "functional")
    assert misstep_command(*command, environment={"MISSTEP_CAPSULES": "5"}).exit == 0
    again = misstep_command("replay", "fox@5", "--json")
    facts = json.loads(again.out)
    assert (again.exit, facts["exact"]) == (0, "exact"), again.err
    verdict = facts["verdict"]
    assert (verdict["phase"], verdict["node"], verdict["precision"]) == ("optimizer", "optimizer/Adam", "operator")


COMPILED = """
    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(3, 2)

        def construct(self, x):
            return self.fc(ops.log(x))

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    for number in range(1, 4):
        x = np.full((4, 3), -1.0 if number == 2 else 1.0, np.float32)
        train(ms.Tensor(x), ms.Tensor(np.ones((4, 2), np.float32)))
"""


def test_a_compiled_step_has_no_capsule_and_says_what_to_do_instead(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    first = run_story(COMPILED, "--level", "guard", "--name", "fox")
    assert first.exit == 0, first.err
    again = misstep_command("replay", "fox")
    assert again.exit == 1
    assert "no capsule of step 2: compiled code cannot be" in again.err
    assert "MISSTEP_PYNATIVE=2 misstep run" in again.err
