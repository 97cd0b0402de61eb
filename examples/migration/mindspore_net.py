"""The same classifier in MindSpore."""

from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.act = nn.LeakyReLU(alpha=0.01)
        self.pool = nn.MaxPool2d(2, stride=2)
        self.head = nn.Dense(8 * 4 * 4, 5)

    def construct(self, x):
        x = self.pool(self.act(self.norm(self.conv(x))))
        return self.head(x.flatten(start_dim=1))


def build():
    net = Net()
    return net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), learning_rate=0.1, momentum=0.9)
