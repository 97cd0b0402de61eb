from mindspore import nn, ops


class Generator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.up1 = nn.Conv2dTranspose(4, 8, 4, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.up2 = nn.Conv2dTranspose(8, 3, 2, stride=2, pad_mode="valid", has_bias=True)

    def construct(self, z):
        return ops.tanh(self.up2(ops.relu(self.norm(self.up1(z)))))


def build():
    return Generator()
