# truth: {step = 4}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
weights = ms.ParameterTuple(net.trainable_params())


def forward(x, shift):
    return ops.log(net(x) - shift).square().mean()  # planted


gradient = ms.value_and_grad(forward, None, weights)


@ms.jit
def train(x, shift):
    loss, grads = gradient(x, shift)
    for i in range(4):
        ops.assign_sub(weights[i], 0.0001 * grads[i])
    return loss


for number in range(1, 7):
    loss = train(batch(16, 8), Tensor(50.0 if number == 4 else -50.0, ms.float32))

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
