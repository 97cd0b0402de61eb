from mindspore import nn, ops


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Dense(8, 16), nn.GELU(approximate=False), nn.LayerNorm((16,), epsilon=1e-5), nn.Dense(16, 16), nn.ReLU()
        )
        self.head = nn.Dense(16, 4)

    def construct(self, x):
        x = ops.flatten(x)
        return self.head(self.layers(x))


def build():
    net = Mlp()
    return net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), learning_rate=0.1, momentum=0.9)
