from mindspore import nn


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Dense(8, 4)

    def construct(self, x):
        return self.head(self.encoder(x)[:, 0])


def build():
    return Encoder()
