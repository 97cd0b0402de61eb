"""Where a step's time goes is known of every training, whatever loop it has and however closely it is watched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from story import Result, RunStory

from misstep.core.segments import COMPILE, FIRST, GAP, LOSS, SEGMENTS
from misstep.store.layout import rank_paths
from misstep.store.tracefile import Trace, read_trace

LOADER = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow:
    def __call__(self, x):
        time.sleep(0.003)
        return x

class Numbers(Dataset):
    slow = Slow()
    def __len__(self):
        return 64
    def __getitem__(self, index):
        if index == 17:
            time.sleep(0.03)
        return self.slow(torch.randn(4)), torch.randn(1)

def main():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(2):
        for x, y in DataLoader(Numbers(), batch_size=4, num_workers=WORKERS, **OPTIONS):
            loss = (net(x) - y).pow(2).mean()
            time.sleep(0.004)     # in the loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.002)     # in the gap

if __name__ == "__main__":
    main()
"""


def traced(result: Result) -> Trace:
    assert result.exit == 0, result.err
    return read_trace(rank_paths(result.run.path, 0).trace)


def medians(trace: Trace) -> dict[str, float]:
    """Milliseconds of each segment, of the steps after the first."""
    return dict(zip(SEGMENTS, np.median(trace.steps["spent"][1:], axis=0) / 1e3))


@pytest.mark.story
@pytest.mark.parametrize(
    ("workers", "level", "options"),
    [(0, "off", "{}"), (1, "module", "{}"), (1, "guard", "dict(multiprocessing_context='spawn')")],
)
def test_the_time_of_a_step_is_found_where_it_is_spent(
    run_story: RunStory, workers: int, level: str, options: str
) -> None:
    script = LOADER.replace("WORKERS", str(workers)).replace("OPTIONS", options)
    result = run_story(script, "--level", level)
    trace = traced(result)
    spent = medians(trace)
    assert len(trace.steps) == 32
    assert spent["loss"] >= 4
    assert spent["gap"] >= 2
    assert trace.steps["flags"][0] & FIRST
    assert (trace.steps["queue"][1:] >= 0).any() == bool(workers)
    if workers == 0:
        assert spent["data"] >= 12
    # Batches of the last moment may still lie in a lane when the training ends.
    assert 24 <= len(trace.batches) <= 32
    assert set(trace.batches["worker"].tolist()) == ({0} if workers else {-1})
    assert int(trace.batches["slowest_index"][np.argmax(trace.batches["slowest"])]) == 17
    facts = next(event.facts for event in result.run.events("loader"))
    assert (facts["dataset"], facts["num_workers"], facts["batch_size"]) == ("Numbers", workers, 4)
    assert "DataLoader(Numbers()" in facts["source"]["code"]
    stages: Any = list(result.run.events("stages"))[-1].facts
    assert ["Numbers", "Slow"] in [path for path, _ in stages["paths"]]


@pytest.mark.story
@pytest.mark.mindspore
@pytest.mark.parametrize("mode", ["PYNATIVE_MODE", "GRAPH_MODE"])
def test_both_modes_of_mindspore_are_traced(run_story: RunStory, mode: str) -> None:
    result = run_story(
        f"""
import time
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn

ms.set_context(mode=ms.{mode})

class Source:
    def __len__(self):
        return 48
    def __getitem__(self, index):
        time.sleep(0.01)
        return np.ones(4, np.float32), np.ones(1, np.float32)

net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.01)
data = ds.GeneratorDataset(Source(), ["x", "y"]).batch(4)
ms.Model(net, nn.MSELoss(), optimizer).train(1, data, dataset_sink_mode=False)
""",
        "--level",
        "off",
    )
    trace = traced(result)
    assert len(trace.steps) == 12
    assert (trace.steps["spent"] >= 0).all()
    first, later = trace.steps["spent"][0], np.median(trace.steps["spent"][1:], axis=0)
    if mode == "GRAPH_MODE":
        assert first[COMPILE] > 20 * later[COMPILE]
    assert [stage["stage"] for stage in next(iter(result.run.events("loader"))).facts["stages"]] == [
        "GeneratorDataset",
        "BatchDataset",
    ]
    assert later[LOSS] >= 0
    assert later[GAP] >= 0
