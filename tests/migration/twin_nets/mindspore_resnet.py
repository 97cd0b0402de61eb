from mindspore import nn, ops


def conv(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, pad_mode="pad", padding=size // 2)


class Block(nn.Cell):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        # defined in another order than they run
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.SequentialCell([conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)])
        self.norm_b = nn.BatchNorm2d(outputs)
        self.norm_a = nn.BatchNorm2d(outputs)
        self.conv_b = conv(outputs, outputs, 3)
        self.conv_a = conv(inputs, outputs, 3, stride)

    def construct(self, x):
        shortcut = x if self.down is None else self.down(x)
        out = ops.relu(self.norm_a(self.conv_a(x)))
        return ops.relu(self.norm_b(self.conv_b(out)) + shortcut)


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.backbone = nn.SequentialCell(
            conv(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), Block(8, 8), Block(8, 8), Block(8, 16, 2), Block(16, 16)
        )
        self.head = nn.Dense(16, 5)

    def construct(self, x):
        return self.head(self.backbone(x).mean(axis=(2, 3)))


def build():
    net = ResNet()
    return net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.05, momentum=0.9, weight_decay=1e-4)
