# truth: {step = 4, op = 'div', phase = 'backward'}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

class Scale(nn.Cell):
    by = 1.0

    def construct(self, x):
        return x * 1.0

    def bprop(self, x, out, dout):
        return (dout * 0.0 / self.by,)  # planted


body, scale = nn.Dense(8, 4), Scale()
net = nn.SequentialCell(body, scale)
optimizer = nn.SGD(net.trainable_params(), 0.05)
step = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
for number in range(1, 7):
    scale.by = 0.0 if number == 4 else 1.0
    loss, grads = step(batch(16, 8))
    optimizer(grads)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
