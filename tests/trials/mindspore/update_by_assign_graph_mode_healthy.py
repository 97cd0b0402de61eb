# truth: {kind = 'healthy', steps = 6}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
ms.set_context(mode=ms.GRAPH_MODE)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
weights = ms.ParameterTuple(net.trainable_params())


def forward(x):
    return net(x).square().mean()


step = ms.value_and_grad(forward, None, weights)
for number in range(1, 7):
    loss, grads = step(batch(16, 8))
    for p, g in zip(weights, grads):
        p.set_data(p - 0.05 * g)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
