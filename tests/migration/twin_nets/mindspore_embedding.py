from mindspore import nn, ops


class Bag(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.hidden = nn.Dense(8, 8)
        self.out = nn.Dense(8, 2)

    def construct(self, tokens):
        return self.out(ops.relu(self.hidden(self.words(tokens).mean(1))))


def build():
    net = Bag()
    return net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), learning_rate=0.01)
