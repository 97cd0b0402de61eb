# truth: {step = 4, op = 'log', samples = [5]}
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
        self.body = nn.Dense(8, 4)

    def construct(self, x):
        return self.body(ops.log(x))  # planted


net = Model()
optimizer = nn.SGD(net.trainable_params(), 0.05)
step = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
data = rng.random((96, 8)).astype(np.float32) + 0.5
data[3 * 16 + 5] = -4.0
for first in range(0, 96, 16):
    loss, grads = step(Tensor(data[first : first + 16]))
    optimizer(grads)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
