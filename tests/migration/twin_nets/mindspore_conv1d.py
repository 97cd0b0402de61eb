from mindspore import nn, ops


class Audio(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(2, 6, 5, stride=2, pad_mode="pad", padding=2, has_bias=True)
        self.norm = nn.BatchNorm1d(6)
        self.second = nn.Conv1d(6, 6, 3, dilation=2, pad_mode="valid", has_bias=True)
        self.pool = nn.AvgPool1d(2, stride=2)
        self.out = nn.Dense(6 * 2, 3)

    def construct(self, x):
        x = ops.tanh(self.norm(self.first(x)))
        x = self.pool(self.second(x))
        return self.out(x.flatten(start_dim=1))


def build():
    return Audio()
