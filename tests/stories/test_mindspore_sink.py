"""Sink mode: on a CPU MindSpore takes it back, and every batch is a step that is seen; `data_sink` it refuses."""

from __future__ import annotations

import json

import pytest
from story import RunStory

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

TRAIN = """
    import json
    import mindspore as ms, numpy as np
    from mindspore import dataset, nn

    ms.set_context(mode=ms.GRAPH_MODE)
    net, rng = nn.SequentialCell(nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2)), np.random.default_rng(0)
    rows = [tuple(rng.standard_normal((4, size)).astype(np.float32) for size in (3, 2)) for _ in range(6)]
    data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False, num_parallel_workers=1)
    optimizer, loss_of, losses = nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.MSELoss(), []

    class Note(ms.train.Callback):
        def on_train_step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs.asnumpy()))

    {train}
    print(json.dumps(losses))
"""
MODEL = "ms.Model(net, loss_of, optimizer).train(2, data, callbacks=[Note()], dataset_sink_mode=True, sink_size=3)"
FUNCTION = "ms.data_sink(lambda x, y: x, data, sink_size=3)()"


def test_every_batch_of_a_sinking_model_is_a_step_on_a_cpu(run_story: RunStory) -> None:
    result = run_story(TRAIN.format(train=MODEL))
    assert result.exit == 0, result.err
    told = json.loads(result.out)
    steps = [step for step in result.run.steps() if step.number]
    assert ([step.number for step in steps], [step.loss for step in steps]) == (list(range(1, 13)), told)
    assert {address.role for address, _ in result.run.step_rows(7)} == {"loss", "param"}


def test_what_mindspore_refuses_is_told_in_its_own_words(run_story: RunStory) -> None:
    result = run_story(TRAIN.format(train=FUNCTION))
    assert result.exit == 1
    assert "Data sinking supports ascend or gpu device target, but device target is CPU." in result.err
    assert "misstep: internal error" not in result.err
