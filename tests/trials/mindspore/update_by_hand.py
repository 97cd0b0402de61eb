# truth: {step = 4, op = 'log'}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))


def forward(x, wrong):
    out = net(x)
    if wrong:
        out = ops.log(out - 50)  # planted
    return out.square().mean()


weights = ms.ParameterTuple(net.trainable_params())
step = ms.value_and_grad(forward, None, weights)
for number in range(1, 7):
    loss, grads = step(batch(16, 8), number == 4)
    for p, g in zip(weights, grads):
        p.set_data(p - 0.05 * g)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
