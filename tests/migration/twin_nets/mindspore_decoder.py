from mindspore import nn


class Decoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.block = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, dropout=0.0, batch_first=True)
        self.vocabulary = nn.Dense(8, 20)

    def construct(self, tokens, memory):
        return self.vocabulary(self.block(self.embed(tokens), memory))


def build():
    return Decoder()
