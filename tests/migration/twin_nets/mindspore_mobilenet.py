from mindspore import nn


class Inverted(nn.Cell):
    def __init__(self, width=6, expand=2):
        super().__init__()
        wide = width * expand
        self.expand = nn.Conv2d(width, wide, 1)
        self.expand_norm = nn.BatchNorm2d(wide)
        self.relu6 = nn.ReLU6()
        self.depthwise = nn.Conv2d(wide, wide, 3, pad_mode="pad", padding=1, group=wide)
        self.depthwise_norm = nn.BatchNorm2d(wide)
        self.swish = nn.HSwish()
        self.project = nn.Conv2d(wide, width, 1)
        self.project_norm = nn.BatchNorm2d(width)

    def construct(self, x):
        y = self.relu6(self.expand_norm(self.expand(x)))
        y = self.swish(self.depthwise_norm(self.depthwise(y)))
        return x + self.project_norm(self.project(y))


def build():
    return Inverted()
