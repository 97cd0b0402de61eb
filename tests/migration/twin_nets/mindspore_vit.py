import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Block(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-5)
        self.qkv = nn.Dense(width, 3 * width)
        self.proj = nn.Dense(width, width)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.fc1 = nn.Dense(width, 2 * width)
        self.fc2 = nn.Dense(2 * width, width)

    def construct(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, c // self.heads).transpose(2, 0, 3, 1, 4)
        weights = ops.softmax(q @ k.swapaxes(-2, -1) / (c // self.heads) ** 0.5, axis=-1)
        x = x + self.proj((weights @ v).swapaxes(1, 2).reshape(b, n, c))
        return x + self.fc2(ops.gelu(self.fc1(self.norm2(x)), approximate="none"))


class ViT(nn.Cell):
    def __init__(self, width=8):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4, pad_mode="valid", has_bias=True)
        self.cls = Parameter(Tensor(np.zeros((1, 1, width), np.float32)))
        self.position = Parameter(Tensor(np.zeros((1, 5, width), np.float32)))
        self.blocks = nn.CellList([Block(width, 2) for _ in range(2)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, 3)

    def construct(self, x):
        x = self.patches(x).flatten(start_dim=2).swapaxes(1, 2)
        x = ops.cat([self.cls.broadcast_to((x.shape[0], -1, -1)), x], axis=1) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def build():
    return ViT()
