from mindspore import nn


class Slopes(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = nn.Dense(6, 8)
        self.slope = nn.PReLU(8)
        self.b = nn.Dense(8, 8)
        self.one = nn.PReLU()
        self.leak = nn.LeakyReLU(alpha=0.05)

    def construct(self, x):
        return self.leak(self.one(self.b(self.slope(self.a(x)))))


def build():
    return Slopes()
