"""The page says what `misstep show` says: the first bad value, silent faults, notes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.core.finding import TensorFact, Verdict
from misstep.core.graph import Node, Source, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import DTYPE_CODES, HEAD, SUMMARY
from misstep.hub import RunningHub
from misstep.kernels import summarize
from misstep.store.writing.writer import RunWriter

VERDICT = Verdict(
    step=2,
    rank=0,
    phase="forward",
    kind="nan",
    node="fc",
    op="Linear",
    source=Source("train.py", 8, "y = log(x); z = y"),
    inputs=(TensorFact("fc:input@2", "-3 … 4"),),
    outputs=(TensorFact("fc:output@2", "3 NaN of 8", nan=3),),
    precision="module",
    exact="exact",
    note="samples 1, 2 of the 8 in the batch cause it",
)


@pytest.fixture
def stuck(tmp_path: Path) -> RunWriter:
    """A run whose weight has gradients and never moves."""
    info = RunInfo(name="stuck", command=("python", "train.py"), started=900.0, versions={"torch": "2.13.0"})
    writer = RunWriter(tmp_path / "stuck", 0, info)
    writer.add_node(Node(0, "fc.weight", "parameter", "Parameter"))
    tensors = [writer.add_tensor(TensorKey(0, "param")), writer.add_tensor(TensorKey(0, "grad"))]
    shape = writer.add_shape((4,))
    for step in range(1, 5):
        head, summary = np.zeros(2, HEAD), np.zeros(2, SUMMARY)
        head["tensor"], head["shape"], head["dtype"] = tensors, shape, DTYPE_CODES["float32"]
        head["step"] = step
        summary[:] = [summarize(np.full(4, value, np.float32)) for value in (0.5, 0.1)]
        told = Step(step, loss=1.0, seconds=0.1, learning_rate=0.0, optimizer="SGD", captured="module")
        writer.step(told, head, summary)
    return writer


def story(hub: RunningHub, lang: str = "en") -> Any:
    request = urllib.request.Request(f"{hub.url}/api/v1/runs/stuck/story?lang={lang}")
    request.add_header("X-Misstep-Token", hub.token)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def test_a_silent_fault_is_told_in_the_language_that_is_asked_for(hub: RunningHub, stuck: RunWriter) -> None:
    stuck.event("note", text="MindSpore had compiled something before misstep could ask for its graphs; there are none")
    stuck.end("finished", 0)
    (found,) = story(hub)["findings"]
    assert found["title"] == "1 weight did not change although the gradients are not zero"
    assert (found["advice"], found["severity"]) == ("the learning rate is 0", "error")
    chinese = story(hub, "zh")
    assert chinese["findings"][0]["title"] == "1 个权重没有变化，尽管梯度不为零"
    assert chinese["findings"][0]["advice"] == "学习率为 0"
    assert chinese["notes"][0].startswith("misstep 还没来得及")
    assert chinese["birth"] is None


def test_the_first_bad_value_comes_with_its_samples_and_the_command_that_runs_it_again(
    hub: RunningHub, stuck: RunWriter
) -> None:
    stuck.event("capsule", text="misstep replay stuck@2", step=2, bytes=9, path="step-2.pt")
    stuck.verdict(VERDICT)
    stuck.end("finished", 0)
    birth = story(hub)["birth"]
    assert birth["sentence"].startswith("step 2, forward, fc (Linear): output has 3 NaN of 8; inputs were finite")
    assert (birth["node"], birth["command"]) == ("fc", "misstep replay stuck@2")
    assert birth["notes"] == ["the step was replayed: exact", "samples 1, 2 of the 8 in the batch cause it"]
    said = story(hub, "zh")["birth"]["sentence"]
    born, *rest = said.split("；")
    assert born == "轮次 2，前向，fc (Linear)：output 的 8 个元素中有 3 个 NaN"
    assert rest == ["输入均为有限值", "train.py:8 `y = log(x); z = y`"]
