"""The same forty samples as a MindSpore dataset."""

import numpy as np
from mindspore.dataset import GeneratorDataset


def train():
    draw = np.random.default_rng(0)
    x = draw.standard_normal((40, 3, 8, 8)).astype(np.float32)
    rows = [(x[at], np.int32(at % 5)) for at in range(40)]
    return GeneratorDataset(rows, ["image", "label"], shuffle=False)
