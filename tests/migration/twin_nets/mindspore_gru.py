from mindspore import nn


class Forecast(nn.Cell):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 7, batch_first=True)
        self.read = nn.Dense(7, 1)

    def construct(self, x):
        _, last = self.gru(x)
        return self.read(last[0])


def build():
    net = Forecast()
    return net, nn.MSELoss(), nn.Adam(net.trainable_params(), learning_rate=0.01)
