"""A small regression in MindSpore's graph mode that takes the logarithm of what is sometimes negative.

misstep run --level op python examples/mindspore_log_of_negative.py
"""

import mindspore as ms
import numpy as np
from mindspore import nn, ops

ms.set_context(mode=ms.GRAPH_MODE)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 1)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.fc1(x)
        y = ops.log(y + 1)  # fine as long as nobody is below -1
        return self.fc2(self.act(y))


def main(steps: int = 6) -> None:
    ms.set_seed(7)
    rng = np.random.default_rng(7)
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    network = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
    for step in range(steps):
        scale = 0.05 if step < 3 else 20.0  # the data drifts: one day it is too large
        x = rng.standard_normal((16, 8)).astype(np.float32) * scale
        loss = network(ms.Tensor(x), ms.Tensor(x.sum(1, keepdims=True)))
    print(f"trained {steps} steps, last loss {float(loss.asnumpy()):.4f}")


if __name__ == "__main__":
    main()
