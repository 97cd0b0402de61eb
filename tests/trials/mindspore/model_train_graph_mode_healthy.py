# truth: {kind = 'healthy', steps = 6}
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor

ms.set_seed(0)
rng = np.random.default_rng(0)


def batch(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))

ms.set_context(mode=ms.GRAPH_MODE)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dropout(p=0.2), nn.Dense(16, 4))
data = ms.dataset.NumpySlicesDataset((rng.random((96, 8)).astype(np.float32), rng.random((96, 4)).astype(np.float32)),
                                     shuffle=False).batch(16)
model = ms.train.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 1e-3))
model.train(1, data, dataset_sink_mode=False)

import hashlib
print("weights", hashlib.sha1(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest())
