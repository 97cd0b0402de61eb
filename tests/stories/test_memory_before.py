"""What a training will need is known before it runs, equals what it then needs, and nothing of it is run for real."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from story import RunCommand, Write

TRAINING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) for _ in range(2))
        self.head = nn.Linear(32, 50)
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if CHECKPOINTED else block(x)
        return self.head(x)

net = Net()
optimizer = torch.optim.AdamW(net.parameters())
words = torch.randint(0, 50, (64, 25))
for (x,) in DataLoader(TensorDataset(words), batch_size=8, num_workers=1):
    out = net(x[:, :-1])
    loss = nn.functional.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    print(loss.item())
    torch.save(net.state_dict(), "model.pt")
open("finished", "w").write("x")
"""


@pytest.mark.story
def test_the_peak_is_known_before_the_training_runs(write: Write, misstep_command: RunCommand) -> None:
    def told(*given: str, checkpointed: bool = False) -> dict[str, Any]:
        path = write("train.py", TRAINING.replace("CHECKPOINTED", str(checkpointed)))
        done = misstep_command("memory", "--json", "--batch", "32", *given, sys.executable, "train.py")
        assert done.exit == 0, done.err
        assert not (path.parent / "finished").exists()
        assert ("--measure" in given) or not (path.parent / "model.pt").exists(), "what has no values is never saved"
        facts: dict[str, Any] = json.loads(done.out)["footprint"]
        return facts

    predicted, measured = told(), told("--measure")
    assert predicted["peak"] == pytest.approx(measured["peak"], rel=0.03)
    assert {"weights", "optimizer", "activations"} <= set(predicted["kinds"])
    assert any(one["module"].startswith("blocks.") and one["source"] for one in predicted["holders"])
    assert predicted["samples"] == 32
    (write("model.pt", "")).unlink()
    assert told(checkpointed=True)["peak"] < 0.9 * predicted["peak"]


@pytest.mark.story
def test_a_shape_that_depends_on_values_is_said_with_its_line(write: Write, misstep_command: RunCommand) -> None:
    write(
        "train.py",
        """
        import torch
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            y = net(torch.randn(8, 4))
            y[y > 0].sum().backward()
            optimizer.step()
        """,
    )
    done = misstep_command("memory", sys.executable, "train.py")
    assert done.exit == 1
    assert "train.py:7" in done.err
    assert "--measure" in done.err
