"""Checkpoints of two frameworks side by side, and what one alone tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from misstep.compare.checkpoints import diff_checkpoints, inspect, learning
from misstep.errors import CompareError
from misstep.store.checkpoint import write_mindspore_ckpt, write_safetensors

THEIR_WORDS = {
    "1.weight": "1.gamma",
    "1.bias": "1.beta",
    "1.running_mean": "1.moving_mean",
    "1.running_var": "1.moving_variance",
}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def as_mindspore(model: nn.Module, path: Path, **changes: np.ndarray) -> Path:
    arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items() if "num_batches" not in name}
    arrays |= changes
    write_mindspore_ckpt(path, {f"backbone.{THEIR_WORDS.get(name, name)}": array for name, array in arrays.items()})
    return path


def test_a_pth_and_a_ckpt_of_one_network_are_equal(tmp_path: Path) -> None:
    model = network()
    torch.save({"model": model.state_dict()}, tmp_path / "a.pth")
    found = diff_checkpoints(tmp_path / "a.pth", as_mindspore(model, tmp_path / "b.ckpt"))
    assert found
    assert (found.counts, [entry.name for entry in found.only_left]) == (
        {"identical": 8},
        ["model.1.num_batches_tracked"],
    )


def test_the_one_changed_weight_is_named_with_what_happened_to_it(tmp_path: Path) -> None:
    model = network()
    torch.save(model.state_dict(), tmp_path / "a.pth")
    changed = {"2.weight": model[2].weight.detach().numpy() * np.float32(0.5)}
    found = diff_checkpoints(tmp_path / "a.pth", as_mindspore(model, tmp_path / "b.ckpt", **changed))
    assert [(row.entry.name, row.note) for row in found.causes] == [
        ("2.weight", "the right side is 0.5 times the left")
    ]


def test_the_optimizer_can_be_left_out(tmp_path: Path) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.randn(4, 6)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a.pth")
    torch.save(model.state_dict(), tmp_path / "b.pth")
    found = diff_checkpoints(tmp_path / "a.pth", tmp_path / "b.pth", section="weights")
    assert (bool(found), found.only_left, found.only_right) == (True, (), ())
    assert not diff_checkpoints(tmp_path / "a.pth", tmp_path / "b.pth")


def test_inspection_names_nan_inf_and_exploding_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    fine = {f"layer{at}.weight": rng.standard_normal((4, 4)).astype(np.float32) for at in range(5)}
    bad = fine | {
        "nan.weight": np.array([1.0, np.nan], np.float32),
        "inf.weight": np.array([1.0, np.inf], np.float32),
        "big.weight": np.full((4, 4), 3e8, np.float32) * fine["layer0.weight"],
        "zero.bias": np.zeros(4, np.float32),
    }
    write_safetensors(tmp_path / "x.safetensors", bad)
    found = inspect(tmp_path / "x.safetensors")
    states = {one.name: one.state for one in found.weights if one.state != "fine"}
    assert states == {"nan.weight": "nan", "inf.weight": "inf", "big.weight": "exploding", "zero.bias": "all zero"}
    assert not found
    assert "nan.weight is nan (1 NaN of 2" in found.summary()


def test_parameters_that_never_move_are_named(tmp_path: Path) -> None:
    model = network()
    model[0].weight.requires_grad_(False)
    paths = []
    for step in range(3):
        torch.save(model.state_dict(), tmp_path / f"step{step}.pth")
        paths.append(tmp_path / f"step{step}.pth")
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 if parameter.requires_grad else 0.0)
    with torch.no_grad():
        model[2].bias.fill_(float("nan"))
    torch.save(model.state_dict(), tmp_path / "last.pth")
    found = learning([*paths, tmp_path / "last.pth"])
    assert found.unchanged == ("0.weight", "1.running_mean", "1.running_var", "1.num_batches_tracked")
    assert found.went_bad == {"2.bias": str(tmp_path / "last.pth")}
    assert "not learning or frozen: 0.weight" in found.summary()


def test_one_checkpoint_alone_cannot_tell_what_changed(tmp_path: Path) -> None:
    with pytest.raises(CompareError, match="at least two"):
        learning([tmp_path / "a.pth"])
