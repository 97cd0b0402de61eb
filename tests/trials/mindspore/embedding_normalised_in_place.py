# truth: {step = 4, op = 'div', after_update = true}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

net = nn.SequentialCell(nn.Embedding(20, 8), nn.Dense(8, 4))
optimizer = nn.SGD(net.trainable_params(), 0.05)
step = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
for number in range(1, 7):
    loss, grads = step(Tensor(rng.integers(0, 20, 16).astype(np.int32)))
    optimizer(grads)
    table = net[0].embedding_table
    norm = table.value().norm(dim=1, keepdim=True)
    if number == 4:
        norm = norm * 0
        table.set_data(table.value() * 0)
    table.set_data(table.value() / norm)  # planted

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
