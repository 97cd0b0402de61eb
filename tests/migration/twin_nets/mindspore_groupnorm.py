from mindspore import nn


class Grouped(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, pad_mode="valid", group=2, has_bias=True)
        self.norm = nn.GroupNorm(4, 8)
        self.act = nn.SiLU()
        self.out = nn.Conv2d(8, 2, 1, has_bias=True)

    def construct(self, x):
        return self.out(self.act(self.norm(self.conv(x))))


def build():
    return Grouped()
