# truth: {kind = 'dies', exception = 'RuntimeError', line = true}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))


class Lies:
    rows = list(range(10))

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return np.full(8, self.rows[index], np.float32)  # planted


net = nn.Dense(8, 4)
optimizer = nn.SGD(net.trainable_params(), 0.05)
step = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
for (x,) in ms.dataset.GeneratorDataset(Lies(), ["x"], shuffle=False).batch(64):
    loss, grads = step(x)
    optimizer(grads)
