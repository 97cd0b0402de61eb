"""One network written twice, the second with MindSpore's defaults left standing: several differences at once."""

from __future__ import annotations

TORCH = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8, eps=1e-3, momentum=0.01)
        self.leaky = nn.LeakyReLU()
        self.pool = nn.MaxPool2d(2)
        self.gn = nn.GroupNorm(2, 8, eps=1e-2)
        self.elu = nn.ELU(alpha=0.5)
        self.avg = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(8 * 16, 16)
        self.gelu = nn.GELU()
        self.ln = nn.LayerNorm(16)
        self.tanh = nn.Hardtanh(-2.0, 2.0)
        self.soft = nn.Softmax(dim=0)

    def forward(self, x):
        x = self.pool(self.leaky(self.bn(self.conv(x))))
        x = self.drop(self.avg(self.elu(self.gn(x))))
        x = self.tanh(self.ln(self.gelu(self.fc(x.flatten(1)))))
        return self.soft(x)

def build():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)
    return net, nn.SmoothL1Loss(beta=0.5), optimizer
"""

MINDSPORE = """
from mindspore import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2)
        self.bn = nn.BatchNorm2d(8)
        self.leaky = nn.LeakyReLU()
        self.pool = nn.MaxPool2d(2)
        self.gn = nn.GroupNorm(2, 8)
        self.elu = nn.ELU()
        self.avg = nn.AvgPool2d(3, stride=1, pad_mode="pad", padding=1)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Dense(8 * 16, 16)
        self.gelu = nn.GELU()
        self.ln = nn.LayerNorm((16,))
        self.tanh = nn.Hardtanh()
        self.soft = nn.Softmax()

    def construct(self, x):
        x = self.pool(self.leaky(self.bn(self.conv(x))))
        x = self.drop(self.avg(self.elu(self.gn(x))))
        x = self.tanh(self.ln(self.gelu(self.fc(x.flatten(start_dim=1)))))
        return self.soft(x)

def build():
    net = Net()
    return net, nn.SmoothL1Loss(), nn.SGD(net.trainable_params(), learning_rate=0.1, momentum=0.8)
"""

EXPECTED = {
    ("conv", "padding", "pad_mode='pad', padding=1"),
    ("bn", "eps", "eps=0.001"),
    ("bn", "momentum", "momentum=0.99"),
    ("leaky", "alpha", "alpha=0.01"),
    ("pool", "stride", "stride=2"),
    ("gn", "eps", "eps=0.01"),
    ("elu", "alpha", "alpha=0.5"),
    ("avg", "count_include_pad", "count_include_pad=False"),
    ("drop", "p", "p=0.2"),
    ("gelu", "approximate", "approximate=False"),
    ("ln", "epsilon", "epsilon=1e-05"),
    ("tanh", "min_val", "min_val=-2.0"),
    ("tanh", "max_val", "max_val=2.0"),
    ("soft", "axis", "axis=0"),
    ("loss", "reduction", "reduction='mean'"),
    ("loss", "beta", "beta=0.5"),
    ("optimizer", "momentum", "momentum=0.9"),
    ("optimizer", "weight_decay", "weight_decay=0.01"),
    ("optimizer", "nesterov", "nesterov=True"),
}
"""(where, parameter, fix) of every planted difference."""
