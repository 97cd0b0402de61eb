"""Forty samples as a PyTorch dataset."""

import numpy as np
import torch
from torch.utils.data import TensorDataset


def train():
    draw = np.random.default_rng(0)
    x = torch.tensor(draw.standard_normal((40, 3, 8, 8)), dtype=torch.float32)
    return TensorDataset(x, torch.arange(40, dtype=torch.int32) % 5)
