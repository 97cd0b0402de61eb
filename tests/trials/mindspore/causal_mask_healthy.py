# truth: {kind = 'healthy', steps = 6}
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
        self.qkv, self.out = nn.Dense(8, 24), nn.Dense(8, 1)

    def construct(self, x, mask):
        q, k, v = self.qkv(x).split(8, -1)
        scores = ops.matmul(q, k.swapaxes(1, 2)) / 8**0.5
        scores = scores.masked_fill(mask, float("-inf"))
        return self.out(ops.matmul(ops.softmax(scores, -1), v))


net = Model()
optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-3)
mask = Tensor(np.triu(np.ones((6, 6), bool), 1))
step = ms.value_and_grad(lambda x: net(x, mask).square().mean(), None, optimizer.parameters)
for number in range(1, 7):
    loss, grads = step(batch(4, 6, 8))
    optimizer(grads)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
