import mindspore.nn as nn
from mindspore import ops


class Cnn(nn.Cell):
    def __init__(self, classes=5):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 12, kernel_size=3, stride=2, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(12)
        self.pool = nn.MaxPool2d(2, stride=2)
        self.drop = nn.Dropout(p=0.25)
        self.fc = nn.Dense(12 * 2 * 2, classes)

    def construct(self, x):
        x = ops.relu(self.bn1(self.conv1(x)))
        x = self.pool(ops.relu(self.bn2(self.conv2(x))))
        x = x.reshape(x.shape[0], -1)
        return self.fc(self.drop(x))


def build():
    net = Cnn()
    return net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), learning_rate=1e-3)
