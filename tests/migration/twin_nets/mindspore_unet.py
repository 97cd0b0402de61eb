from mindspore import nn, ops


def conv(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 3, pad_mode="pad", padding=1, has_bias=True)


class Double(nn.Cell):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = conv(inputs, outputs)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = conv(outputs, outputs)
        self.second_norm = nn.BatchNorm2d(outputs)

    def construct(self, x):
        x = ops.relu(self.first_norm(self.first(x)))
        return ops.relu(self.second_norm(self.second(x)))


class UNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mask = nn.Conv2d(4, 2, 1, has_bias=True)
        self.fuse = Double(8, 4)
        self.down1 = Double(1, 4)
        self.down2 = Double(4, 8)
        self.pool = nn.MaxPool2d(2, 2)
        self.up = nn.Conv2dTranspose(8, 4, 2, stride=2, pad_mode="valid", has_bias=True)

    def construct(self, x):
        skip = self.down1(x)
        deep = self.down2(self.pool(skip))
        return self.mask(self.fuse(ops.cat([skip, self.up(deep)], axis=1)))


def build():
    return UNet()
