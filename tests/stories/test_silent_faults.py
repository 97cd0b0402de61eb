"""Nothing fails, the loss is a number, and yet the training is wrong: that is told too."""

from __future__ import annotations

import json

import pytest
from story import TRAINING, RunCommand, RunStory

pytestmark = pytest.mark.story

MINDSPORE = """
    import mindspore as ms, numpy as np
    from mindspore import mint, nn, ops

    ms.set_context(mode=ms.PYNATIVE_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1, self.act, self.fc2 = nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4)

        def construct(self, x):
            x = self.fc1(x)
            {fault}
            return self.fc2(self.act(x))

    net, rng = Net(), np.random.default_rng(0)
    x, y = ms.Tensor(rng.standard_normal((4, 8)).astype(np.float32)), ms.Tensor(np.ones((4, 4), np.float32))
    optimizer, loss_fn = {optimizer}, nn.MSELoss()

    def forward(x, y):
        return loss_fn(net(x), y)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    for number in range(4):
        loss, gradients = differentiate(x, y)
        optimizer(gradients)
"""


def findings(misstep_command: RunCommand) -> dict[str, dict]:
    shown = misstep_command("show", "last", "--json")
    assert shown.exit == 0, shown.err
    return {finding["rule"]: finding for finding in json.loads(shown.out)["findings"]}


@pytest.mark.mindspore
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_an_optimizer_of_mint_that_never_updates_is_found(
    optimizer: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    made = f"mint.optim.{optimizer}(net.trainable_params(), lr=0.1)"
    result = run_story(MINDSPORE.format(fault="pass", optimizer=made))
    assert result.exit == 0, result.err
    found = findings(misstep_command)["silent.weights_unchanged"]
    assert found["title"] == "4 weights did not change although the gradients are not zero"
    assert "mint.optim" in found["advice"]


@pytest.mark.mindspore
def test_a_relu_that_hides_nan_is_found_and_the_loss_is_not_asked(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    made = "nn.SGD(net.trainable_params(), 0.01)"
    result = run_story(MINDSPORE.format(fault="x = ops.log(x)", optimizer=made))
    assert result.exit == 0, result.err
    found = findings(misstep_command)
    assert found["silent.hidden_nan"]["title"].startswith("act (ReLU) hides NaN")
    assert "silent.weights_unchanged" not in found


def test_a_learning_rate_of_zero_is_found(run_story: RunStory, misstep_command: RunCommand) -> None:
    run_story(TRAINING.replace("lr=0.01", "lr=0.0") + "train(4)")
    assert findings(misstep_command)["silent.weights_unchanged"]["advice"] == "the learning rate is 0"


def test_gradients_too_small_to_move_a_weight_are_told_as_such(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    run_story(TRAINING.replace("y.pow(2).mean()", "y.pow(2).mean() * 1e-20") + "train(4)")
    advice = findings(misstep_command)["silent.weights_unchanged"]["advice"]
    assert advice.startswith("the gradients vanish on the way back: the largest, ")


def test_a_healthy_training_has_no_silent_faults(run_story: RunStory, misstep_command: RunCommand) -> None:
    run_story(TRAINING + "train(4)")
    assert findings(misstep_command) == {}
