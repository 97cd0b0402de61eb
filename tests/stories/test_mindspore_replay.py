"""A MindSpore training with nothing but the guard on: the bad step is run again and named by operator and line."""

from __future__ import annotations

import json

import pytest
from story import RunCommand, RunStory

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
