# truth: {step = 4, op = 'log'}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

class Model(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(8, 16), nn.Dense(16, 4)

    def construct(self, x, shift):
        h = ops.tanh(self.a(x))
        return ops.log(self.b(h) + shift)  # planted


ms.set_context(mode=ms.GRAPH_MODE)
net = Model()
optimizer = nn.SGD(net.trainable_params(), 0.01)


def forward(x, shift):
    return net(x, shift).square().mean()


step = ms.value_and_grad(forward, None, optimizer.parameters)


def train_step(x, shift):
    loss, grads = step(x, shift)
    optimizer(grads)
    return loss


for number in range(1, 7):
    loss = train_step(batch(16, 8), Tensor(-10.0 if number == 4 else 3.0))

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
