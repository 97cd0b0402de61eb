# truth: {kind = 'skips', attempts = 8}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
optimizer = nn.SGD(net.trainable_params(), 0.05)

from mindspore.amp import DynamicLossScaler, all_finite

scaler = DynamicLossScaler(2.0**16, 2, 1)


def forward(x):
    return scaler.scale(net(x).square().mean() * 1e38)


step = ms.value_and_grad(forward, None, optimizer.parameters)
for number in range(1, 9):
    loss, grads = step(batch(16, 8))
    grads = scaler.unscale(grads)
    finite = all_finite(grads)
    if finite:
        optimizer(grads)
    scaler.adjust(finite)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
