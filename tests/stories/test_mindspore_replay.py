"""A MindSpore training with nothing but the guard on: the bad step is run again and named by operator and line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from story import SECONDS, RunCommand, RunStory, environment_of_a_user

pytestmark = pytest.mark.story

TRAIN = """
    import mindspore as ms
    import numpy as np
    from mindspore import dataset, nn, ops

    class Body(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc, self.drop = nn.Dense(3, 5), nn.Dropout(p=0.2)

        def construct(self, x):
            y = self.drop(self.fc(x))
            return ops.log(x.sum(1, keepdims=True) + 40) + y  # planted

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.body, self.head = Body(), nn.Dense(5, 2)

        def construct(self, x):
            return self.head(self.body(x))

    ms.set_seed(1)
    rng = np.random.default_rng(0)
    rows = [(rng.standard_normal((4, 3)).astype(np.float32), np.zeros((4, 2), np.float32)) for _ in range(4)]
    rows[2][0][1] = -30  # the second sample of the third batch
    net = Net()
    data = dataset.GeneratorDataset(rows, ["x", "target"], shuffle=False, num_parallel_workers=1)
    model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))
    model.train(1, data, dataset_sink_mode=False)
"""


def test_the_guard_alone_leads_to_the_operator_the_line_and_the_sample(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(TRAIN, "--level", "guard")
    assert result.exit == 0, result.err
    shown = misstep_command("show", "last", "--json")
    verdict = json.loads(shown.out)["verdict"]
    assert (verdict["step"], verdict["phase"], verdict["op"], verdict["precision"]) == (3, "forward", "Log", "operator")
    assert verdict["node"] == "body/Log"
    assert (verdict["source"]["file"], verdict["exact"]) == ("train.py", "exact")
    assert verdict["source"]["code"].endswith("# planted")
    (told,) = result.run.events("samples")
    assert told.facts["samples"] == [1]


HIDDEN = """
    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops

    class Bad(nn.Cell):
        def construct(self, x, k):
            return ops.log(x * 0 + k)  # planted

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1, self.bad, self.fc2 = nn.Dense(3, 5), Bad(), nn.Dense(5, 1)

        def construct(self, x, k):
            return self.fc2(ops.relu(self.bad(self.fc1(x), k)))

    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    differentiate = ms.value_and_grad(lambda x, k: net(x, k).sum(), None, optimizer.parameters)
    for step in range(1, 5):
        loss, gradients = differentiate(ms.Tensor(np.ones((4, 3), np.float32)), ms.Tensor(-1.0 if step == 2 else 2.0))
        optimizer(gradients)
        assert np.isfinite(loss.asnumpy())
"""


def test_nan_that_a_kernel_hides_from_the_loss_leads_to_the_operator_and_the_line(run_story: RunStory) -> None:
    result = run_story(HIDDEN)
    assert result.exit == 0, result.err
    verdict = result.run.verdict
    assert verdict is not None
    assert (verdict.step, verdict.phase, verdict.node, verdict.precision) == (2, "forward", "bad/Log", "operator")
    assert verdict.source is not None
    assert verdict.source.code.endswith("# planted")
    assert "Net/ReLU hides it" in verdict.note
    assert verdict.exact == "exact"


UPDATE = """
    import hashlib
    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops

    class Careless(nn.Optimizer):
        steps = 0

        def construct(self, gradients):
            self.steps += 1
            for weight, gradient in zip(self.parameters, gradients):
                step = gradient * 0.01
                if self.steps == 4:
                    step = step / (weight - weight)  # planted
                ops.assign(weight, weight - step)
            return True

    ms.set_seed(1)
    rng = np.random.default_rng(0)
    net = nn.SequentialCell(nn.Dense(3, 64), nn.Tanh(), nn.Dense(64, 64), nn.Dense(64, 2))
    optimizer = {optimizer}
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    for number in range(1, 6):
        x = rng.standard_normal((16, 3)).astype(np.float32)
        if number == 4:
            {fault}
        train(ms.Tensor(x), ms.Tensor(np.ones((16, 2), np.float32)))  # the step
    digest = hashlib.sha256()
    for parameter in (*net.get_parameters(), *optimizer.get_parameters()):
        digest.update(parameter.asnumpy().tobytes())
    print(digest.hexdigest())
"""


@pytest.mark.parametrize(
    ("optimizer", "fault", "node", "line"),
    [
        (
            "nn.Adam(net.trainable_params(), 0.01, eps=1e-45)",
            "[one.asnumpy().fill(-1) for one in optimizer.moment2]",
            "optimizer/Adam",
            "# the step",
        ),
        ("Careless(0.01, net.trainable_params())", "pass", "optimizer/Div", "# planted"),
    ],
)
def test_a_bad_update_is_run_again_not_compiled_and_named_by_operator_and_line(
    optimizer: str, fault: str, node: str, line: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(UPDATE.format(optimizer=optimizer, fault=fault), "--level", "guard")
    assert result.exit == 0, result.err
    verdict = json.loads(misstep_command("show", "last", "--json").out)["verdict"]
    assert (verdict["step"], verdict["phase"], verdict["node"], verdict["precision"]) == (
        4, "optimizer", node, "operator")  # fmt: skip
    assert verdict["source"]["code"].endswith(line)
    assert verdict["exact"].startswith(("exact", "not exact: the update was replayed from its result"))
    bare = subprocess.run(
        [sys.executable, "train.py"],
        cwd=result.folder,
        env=environment_of_a_user(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert result.out == bare.stdout
