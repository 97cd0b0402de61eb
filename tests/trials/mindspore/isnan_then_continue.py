# truth: {step = 4, op = 'log'}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
optimizer = nn.SGD(net.trainable_params(), 0.05)

def forward(x, wrong):
    out = net(x)
    if wrong:
        out = ops.log(out - 50)  # planted
    return out.square().mean()


step = ms.value_and_grad(forward, None, optimizer.parameters)

for number in range(1, 7):
    loss, grads = step(batch(16, 8), number == 4)
    if np.isnan(loss.asnumpy()):
        continue
    optimizer(grads)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
