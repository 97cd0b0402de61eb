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
        self.conv, self.norm = nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8)
        self.lstm, self.head = nn.LSTM(8, 8), nn.Dense(8, 2)

    def construct(self, x):
        h = ops.relu(self.conv(x)).swapaxes(1, 2)
        h = self.norm(h.reshape(-1, 8)).reshape(h.shape)
        out, _ = self.lstm(h)
        return self.head(out.mean(1))


net = Model().set_train()
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
step = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
for number in range(1, 7):
    loss, grads = step(batch(4, 3, 10))
    optimizer(grads)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
