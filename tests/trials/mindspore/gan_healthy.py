# truth: {kind = 'healthy', iterations = 6}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

net = nn.SequentialCell(nn.Dense(4, 16), nn.ReLU(), nn.Dense(16, 8))
critic = nn.SequentialCell(nn.Dense(8, 16), nn.LeakyReLU(), nn.Dense(16, 1))
of_net, of_critic = nn.Adam(net.trainable_params(), 1e-3), nn.Adam(critic.trainable_params(), 1e-3)


def critic_loss(real, noise):
    return ops.softplus(-critic(real)).mean() + ops.softplus(critic(ops.stop_gradient(net(noise)))).mean()


def net_loss(noise):
    return ops.softplus(-critic(net(noise))).mean()


step_critic = ms.value_and_grad(critic_loss, None, of_critic.parameters)
step_net = ms.value_and_grad(net_loss, None, of_net.parameters)
for number in range(1, 7):
    real, noise = batch(16, 8), batch(16, 4)
    of_critic(step_critic(real, noise)[1])
    of_net(step_net(noise)[1])

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
