"""Pieces of training code for every rule of `misstep lint`: one that is wrong, and one that only looks like it.

The rule is the key; `# here` marks the line that must be named.
"""

from __future__ import annotations

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
"""
LOOP = """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()
for x, y in loader:
{body}
"""


def loop(*lines: str) -> str:
    return LOOP.format(body="\n".join(f"    {line}" for line in lines))


STEP = ("optimizer.zero_grad()", "loss = loss_fn(model(x), y)", "loss.backward()", "optimizer.step()")

WRONG: dict[str, str] = {
    "layers-in-list": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(4, 4) for _ in range(3)]  # here
""",
    "no-super-init": """
class Net(nn.Module):
    def __init__(self):  # here
        self.width = 3
""",
    "layer-made-in-forward": """
class Net(nn.Module):
    def forward(self, x):
        return nn.Linear(x.shape[1], 2)(x)  # here
""",
    "one-layer-repeated": """
stack = nn.Sequential(*[nn.Linear(8, 8)] * 6)  # here
""",
    "parameter-not-leaf": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(3)) * 0.01  # here
""",
    "tensor-not-parameter": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.zeros(3, requires_grad=True)  # here
""",
    "frozen-in-vain": """
backbone = nn.Sequential(nn.Linear(4, 4))
backbone.requires_grad = False  # here
""",
    "optimizer-before-layers": """
net = make_net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
net.head = nn.Linear(16, 10)  # here
""",
    "call-without-parentheses": loop("optimizer.zero_grad  # here", *STEP[1:]),
    "result-discarded": loop("x = torch.relu(x)", "x.view(4, -1)  # here", *STEP),
    "moved-in-vain": loop("x.to('cuda')  # here", *STEP),
    "optimizer-in-loop": loop(
        "opt = torch.optim.Adam(model.parameters())  # here", "opt.zero_grad()", *STEP[1:3], "opt.step()"
    ),
    "rate-huge": "opt = torch.optim.Adam(model.parameters(), lr=0.5)  # here",
    "zero-grad-missing": loop(*STEP[1:3], "optimizer.step()  # here"),
    "zero-grad-misplaced": loop(*STEP[1:3], "optimizer.zero_grad()  # here", "optimizer.step()"),
    "step-missing": loop("optimizer.zero_grad()", "loss = loss_fn(model(x), y)", "loss.backward()  # here"),
    "backward-missing": loop("optimizer.zero_grad()", "loss = loss_fn(model(x), y)", "optimizer.step()  # here"),
    "scheduler-before-optimizer": loop(*STEP[:3], "scheduler.step()  # here", "optimizer.step()"),
    "scheduler-per-batch": """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
for epoch in range(30):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()  # here
""",
    "clip-misplaced": loop(*STEP, "nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # here"),
    "clip-before-unscale": loop(
        "optimizer.zero_grad()",
        "scaler.scale(loss_fn(model(x), y)).backward()",
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # here",
        "scaler.step(optimizer)",
        "scaler.update()",
    ),
    "scaler-incomplete": "scaler = torch.amp.GradScaler('cpu')"
    + loop("optimizer.zero_grad()", "scaler.scale(loss_fn(model(x), y)).backward()  # here", "scaler.step(optimizer)"),
    "accumulation-not-averaged": """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()  # here
        optimizer.zero_grad()
""",
    "loss-keeps-graph": loop(*STEP, "total += loss  # here"),
    "softmax-twice": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.out = nn.Softmax(dim=1)
    def forward(self, x):
        x = self.fc(x)
        return self.out(x)
criterion = nn.CrossEntropyLoss()
def train(model, loader):
    for x, y in loader:
        pred = model(x)
        loss = criterion(pred, y)  # here
model = Net().to("cpu")
""",
    "sigmoid-twice": """
logits = torch.sigmoid(model(x))
loss = F.binary_cross_entropy_with_logits(logits, y)  # here
""",
    "logits-in-probability-loss": """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
loss = nn.BCELoss()(model(x), y)  # here
""",
    "nll-without-log": """
loss = F.nll_loss(F.softmax(model(x), dim=1), y)  # here
""",
    "relu-before-cross-entropy": """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
loss = F.cross_entropy(model(x), y)  # here
""",
    "loss-without-gradient": """
pred = model(x).argmax(dim=1).float()
loss = F.mse_loss(pred, y)  # here
loss.backward()
""",
    "loss-rebuilt": """
loss = torch.tensor(F.mse_loss(model(x), y).item(), requires_grad=True)
loss.backward()  # here
""",
    "loss-arguments-swapped": """
criterion = nn.CrossEntropyLoss()
loss = criterion(labels, outputs)  # here
""",
    "softmax-without-dim": "p = F.softmax(x)  # here",
    "view-for-transpose": "y = x.view(x.size(1), x.size(0), -1)  # here",
    "dropout-always-on": """
class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5)  # here
""",
    "gradients-unused": """
import mindspore as ms
grad_fn = ms.value_and_grad(forward, None, net.trainable_params())
for x, y in data:
    loss, grads = grad_fn(x, y)  # here
    print(loss)
""",
    "eval-not-undone": """
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def validate(model):
    model.eval()  # here
    return sum(F.mse_loss(model(x), y).item() for x, y in val_loader)
for epoch in range(9):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    validate(model)
""",
    "eval-missing": """
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
with torch.no_grad():
    for x, y in test_loader:
        correct += (model(x).argmax(1) == y).sum()  # here
""",
    "training-under-no-grad": """
with torch.no_grad():
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        loss.backward()  # here
""",
    "train-data-not-shuffled": "train_loader = DataLoader(train_set, batch_size=32)  # here",
    "dropout-keep-prob": """
from mindspore import nn as msnn
drop = msnn.Dropout(keep_prob=0.9)  # here
""",
}

RIGHT: dict[str, str] = {
    "layers-in-list": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(4, 4) for _ in range(3)]
        self.body = nn.Sequential(*layers)
        self.names = ["a", "b"]
        self.losses = [nn.MSELoss(), nn.L1Loss()]
        self.taps = []
        for i in range(3):
            layer = nn.Linear(4, 4)
            self.add_module(f"tap{i}", layer)
            self.taps.append(layer)
""",
    "no-super-init": """
class Net(nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        self.width = 3
""",
    "layer-made-in-forward": """
class Net(nn.Module):
    def forward(self, x):
        if self.fc is None:
            self.fc = nn.Linear(x.shape[1], 2)
        return nn.ReLU()(self.fc(x))
""",
    "one-layer-repeated": "stack = nn.Sequential(*[nn.Linear(8, 8) for _ in range(6)], *[nn.ReLU()] * 2)",
    "parameter-not-leaf": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(3) * 0.01)
""",
    "tensor-not-parameter": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(3, requires_grad=False)
""",
    "frozen-in-vain": """
backbone = nn.Sequential(nn.Linear(4, 4))
for p in backbone.parameters():
    p.requires_grad = False
backbone.requires_grad_(False)
x = torch.zeros(3)
x.requires_grad = True
""",
    "optimizer-before-layers": """
net = make_net()
net.head = nn.Linear(16, 10)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
other.head = nn.Linear(16, 10)
""",
    "call-without-parentheses": loop(*STEP),
    "result-discarded": loop("x = x.view(4, -1)", "nn.init.zeros_(model.weight)", "F.relu(x, inplace=True)", *STEP),
    "moved-in-vain": "model = nn.Linear(3, 3)\nmodel.to('cuda')" + loop("x = x.to('cuda')", *STEP),
    "optimizer-in-loop": """
for fold in range(5):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
""",
    "rate-huge": "opt = torch.optim.SGD(model.parameters(), lr=0.5)",
    "zero-grad-missing": """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    for p in model.parameters():
        p.grad = None
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
""",
    "zero-grad-misplaced": loop(*STEP[1:], "optimizer.zero_grad()"),
    "step-missing": """
def gradient_penalty(model, loader):
    for x, y in loader:
        F.mse_loss(model(x), y).backward()
""",
    "backward-missing": loop("loss = loss_fn(model(x), y)", "accelerator.backward(loss)", "optimizer.step()", STEP[0]),
    "scheduler-before-optimizer": loop(*STEP, "scheduler.step()"),
    "scheduler-per-batch": """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=900)
step_lr = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for epoch in range(30):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()
    step_lr.step()
""",
    "clip-misplaced": loop(*STEP[:3], "nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "optimizer.step()"),
    "clip-before-unscale": loop(
        "optimizer.zero_grad()",
        "scaler.scale(loss_fn(model(x), y)).backward()",
        "scaler.unscale_(optimizer)",
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "scaler.step(optimizer)",
        "scaler.update()",
    ),
    "scaler-incomplete": "def finish(scaler, optimizer):\n    scaler.step(optimizer)\n    scaler.update()",
    "accumulation-not-averaged": """
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "loss-keeps-graph": loop(*STEP, "total += loss.item()", "history.append(loss.detach())"),
    "softmax-twice": """
class Net(nn.Module):
    def forward(self, x):
        weights = F.softmax(self.score(x), dim=-1)
        return self.out(weights @ x)
model = Net()
loss = F.cross_entropy(model(x), y)
probabilities = F.softmax(model(x), dim=-1)
""",
    "sigmoid-twice": "loss = F.binary_cross_entropy(torch.sigmoid(model(x)), y)",
    "logits-in-probability-loss": """
model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
loss = nn.BCELoss()(model(x), y)
""",
    "nll-without-log": "loss = F.nll_loss(F.log_softmax(model(x), dim=1), y)",
    "relu-before-cross-entropy": "loss = F.mse_loss(torch.relu(model(x)), y)",
    "loss-without-gradient": """
accuracy = F.l1_loss(model(x).argmax(dim=1).float(), y)
loss = F.mse_loss(model(x), teacher(x).detach())
loss.backward()
""",
    "loss-rebuilt": """
loss = torch.tensor(0.0)
for head in heads:
    loss = loss + F.mse_loss(head(x), y)
loss.backward()
""",
    "loss-arguments-swapped": "loss = F.cross_entropy(outputs, labels)",
    "softmax-without-dim": "p = F.softmax(x, dim=-1)\nq = nn.Softmax(1)(x)\nr = F.softmax(x, **options)",
    "view-for-transpose": "y = x.view(x.size(0), x.size(1), -1).transpose(0, 1)",
    "dropout-always-on": """
class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, self.training) + F.dropout(x, p=0.1, training=self.training)
""",
    "gradients-unused": """
import mindspore as ms
grad_fn = ms.value_and_grad(forward, None, net.trainable_params())
for x, y in data:
    loss, grads = grad_fn(x, y)
    optimizer(grads)
""",
    "eval-not-undone": """
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
teacher = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def validate(model):
    model.eval()
for epoch in range(9):
    model.train()
    teacher.eval()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    validate(model)
""",
    "eval-missing": """
model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
with torch.no_grad():
    for x, y in test_loader:
        correct += (model(x).argmax(1) == y).sum()
""",
    "training-under-no-grad": """
with torch.no_grad():
    features = model(x)
    with torch.enable_grad():
        F.mse_loss(head(features), y).backward()
""",
    "train-data-not-shuffled": """
train_loader = DataLoader(train_set, batch_size=32, sampler=sampler)
ordered_train = DataLoader(train_set, batch_size=32, shuffle=False)
test_loader = DataLoader(test_set, batch_size=32)
""",
    "dropout-keep-prob": "from mindspore import nn as msnn\ndrop = msnn.Dropout(p=0.1)",
}
