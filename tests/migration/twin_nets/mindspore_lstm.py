from mindspore import nn


class Tagger(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Dense(20, 3)

    def construct(self, x):
        states, _ = self.lstm(x)
        return self.out(states[:, -1])


def build():
    net = Tagger()
    return net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), learning_rate=0.1)
