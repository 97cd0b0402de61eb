"""What fails in MindSpore is told with the user's line, the node and the way out."""

from __future__ import annotations

import json
import shutil

import pytest
from story import RunCommand, RunStory

from misstep.adapters.mindspore.numpy_version import numpy_problem

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

TRAIN = """
    import mindspore as ms, numpy as np
    from mindspore import nn, ops, mint

    ms.set_context(mode={mode})
    {before}

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Dense(8, 16), nn.Dense({inputs}, 4)
            self.conv = {conv}

        def construct(self, x):
            x = self.fc1(x)
            x = {image}
            return self.fc2(x)  # second layer

    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    x = ms.Tensor(np.ones((4, 8), np.float32))

    def forward(x):
        return net(x).sum()

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    for number in range(2):
        loss, gradients = differentiate(x)
        optimizer(gradients)
"""


def script(mode: str = "ms.GRAPH_MODE", *, inputs: int = 16, mint_conv: bool = False, before: str = "") -> str:
    conv = "mint.nn.Conv2d(1, 1, 1)" if mint_conv else "nn.ReLU()"
    image = "self.conv(x.reshape(4, 1, 4, 4)).reshape(4, 16)  # picture" if mint_conv else "self.conv(x)"
    return TRAIN.format(mode=mode, inputs=inputs, conv=conv, image=image, before=before)


def test_a_network_that_does_not_compile_is_a_run_with_the_line_and_the_node(run_story: RunStory) -> None:
    result = run_story(script(inputs=15))
    assert result.exit == 1
    (told,) = result.run.events("exception")
    assert told.facts["source"] == {"file": "train.py", "line": 17, "code": "return self.fc2(x)  # second layer"}
    assert told.facts["node"] == "x = matmul(Float32 (4, 16), Float32 (4, 15))"
    (finding,) = [one for one in result.run.findings if one.rule == "mindspore.compile"]
    assert "train.py:17" in finding.title
    assert finding.severity == "error"
    assert result.run.state == "failed"


@pytest.mark.parametrize("mode", ["ms.GRAPH_MODE", "ms.PYNATIVE_MODE"])
def test_a_missing_kernel_is_named_with_its_line_and_what_to_use_instead(mode: str, run_story: RunStory) -> None:
    result = run_story(script(mode, mint_conv=True))
    assert result.exit == 1
    (finding,) = [one for one in result.run.findings if one.rule == "mindspore.missing_kernel"]
    assert finding.title.startswith(("Conv2DExt", "ConvolutionGrad"))
    assert "train.py:16" in finding.title
    assert "nn.Conv2d" in finding.advice


def test_a_deprecated_option_is_told_once_with_its_successor(run_story: RunStory) -> None:
    result = run_story(script(before="for _ in range(3): ms.set_context(pynative_synchronize=True)"))
    assert result.exit == 0, result.err
    found = [one for one in result.run.findings if one.rule == "mindspore.deprecated"]
    assert len(found) == 1
    assert "pynative_synchronize" in found[0].title
    assert "launch_blocking" in found[0].advice


BREAKING = """
    import mindspore as ms, numpy as np
    from mindspore import nn, ops

    class Breaking(nn.Cell):
        def construct(self, x):
            if step == 3:
                wide = ops.concat((x, x), 1)
                raise ValueError(f"cannot use {wide.shape}")  # planted
            return x

    net = nn.SequentialCell(nn.Dense(4, 8), Breaking(), nn.Dense(8, 1))
    optimizer = nn.SGD(net.trainable_params(), 0.01)

    def forward(x):
        return net(x).sum()

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    for step in range(1, 5):
        _, gradients = differentiate(ms.Tensor(np.ones((16, 4), np.float32)))
        optimizer(gradients)
"""


def test_the_flight_record_of_an_exception_opens_elsewhere_and_names_cell_and_line(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(BREAKING, "--level", "guard")
    assert result.exit == 1
    (bundle,) = result.folder.glob("missteps/*/records/crash.zip")
    moved = shutil.move(bundle, result.folder / "crash.zip")
    shutil.rmtree(result.folder / "missteps")
    opened = misstep_command("open", str(moved), "--json")
    assert opened.exit == 0, opened.err
    crash = json.loads(opened.out)
    spot = crash["culprit"]["spot"]
    assert (spot["step"], spot["phase"], spot["type"]) == (3, "forward", "Breaking")
    assert spot["code"].endswith("# planted")
    own = [frame for frame in crash["frames"] if not frame.get("library")]
    assert own[-1]["locals"]["wide"].startswith("float32 [16, 16]")
    assert [step["step"] for step in crash["steps"]] == [1, 2]
    assert crash["batch"][0]["shape"] == [16, 4]


def test_numpy_2_with_mindspore_2_10_is_refused_in_one_sentence_with_the_fix() -> None:
    assert numpy_problem("2.10.0", "1.26.4") == ""
    assert numpy_problem("2.11.0", "2.4.6") == ""
    assert numpy_problem("2.10.0", "2.4.6").endswith("pip install 'numpy<2'")
