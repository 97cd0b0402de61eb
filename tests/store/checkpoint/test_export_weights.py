"""Weights written for the other framework: its names, no wrappers, and it loads them."""

from __future__ import annotations

from pathlib import Path

import mindspore
import numpy as np
import pytest
import torch
from torch import nn

from misstep.cli import main


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.fc, self.norm, self.bn = (
            nn.Embedding(5, 4),
            nn.Linear(4, 4),
            nn.LayerNorm(4),
            nn.BatchNorm1d(4),
        )


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net()


def test_a_wrapped_training_checkpoint_becomes_a_ckpt_that_mindspore_loads(net: Net, tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    state = {f"module._orig_mod.{name}": value for name, value in net.state_dict().items()}
    torch.save({"model": state, "optimizer": optimizer.state_dict()}, tmp_path / "net.pth")
    to = str(tmp_path / "net.ckpt")
    assert main(["export", str(tmp_path / "net.pth"), "--format", "ckpt", "--to", to]) == 0
    loaded = mindspore.load_checkpoint(to)
    assert set(loaded) == {
        "embed.embedding_table", "fc.weight", "fc.bias", "norm.gamma", "norm.beta", "bn.gamma", "bn.beta",
        "bn.moving_mean", "bn.moving_variance",
    }  # fmt: skip
    assert np.array_equal(loaded["fc.weight"].asnumpy(), net.fc.weight.detach().numpy())


def test_a_ckpt_becomes_a_pth_that_torch_loads(net: Net, tmp_path: Path) -> None:
    names = {"norm.gamma": net.norm.weight, "norm.beta": net.norm.bias, "network.fc.weight": net.fc.weight}
    cells = [{"name": name, "data": mindspore.Tensor(value.detach().numpy())} for name, value in names.items()]
    mindspore.save_checkpoint(cells, str(tmp_path / "net.ckpt"))
    to = str(tmp_path / "net.pth")
    assert main(["export", str(tmp_path / "net.ckpt"), "--format", "pth", "--to", to]) == 0
    loaded = torch.load(to, weights_only=True)
    assert set(loaded) == {"norm.weight", "norm.bias", "network.fc.weight"}
    assert torch.equal(loaded["norm.weight"], net.norm.weight)


def test_there_and_back_is_the_same_network(net: Net, tmp_path: Path) -> None:
    torch.save(net.state_dict(), tmp_path / "net.pth")
    for source, kind, to in (("net.pth", "ckpt", "a.ckpt"), ("a.ckpt", "pth", "b.pth")):
        assert main(["export", str(tmp_path / source), "--format", kind, "--to", str(tmp_path / to)]) == 0
    other = Net()
    other.load_state_dict(torch.load(tmp_path / "b.pth", weights_only=True), strict=False)
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values()))
