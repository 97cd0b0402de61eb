"""Checkpoints in many files, and files with a tensor nobody can read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn

from misstep.cli import main
from misstep.compare.checkpoints import inspect
from misstep.compare.layers import diff
from misstep.errors import TensorUnavailable
from misstep.store.checkpoint import read_checkpoint, write_safetensors


def sharded(folder: Path, weights: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    places = {}
    for at, (name, array) in enumerate(weights.items(), start=1):
        file = f"model-{at:05}-of-{len(weights):05}.safetensors"
        write_safetensors(folder / file, {name: array})
        places[name] = file
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def test_shards_and_their_index_are_one_checkpoint(tmp_path: Path) -> None:
    weights = {"fc.weight": np.ones((2, 3), np.float32), "fc.bias": np.zeros(2, np.float32)}
    folder = sharded(tmp_path / "hf", weights)
    write_safetensors(tmp_path / "whole.safetensors", weights)
    for path in (folder, folder / "model.safetensors.index.json"):
        assert diff(path, tmp_path / "whole.safetensors")
    assert main(["show", str(folder)]) == 0
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(TensorUnavailable, match=r"model-00002-of-00002\.safetensors is not there"):
        read_checkpoint(folder)["fc.bias"]


def test_a_distributed_checkpoint_of_torch_is_read_without_torch_running_it(tmp_path: Path) -> None:
    net = nn.Linear(3, 2)
    dcp.save({"model": net.state_dict(), "epoch": 3}, checkpoint_id=tmp_path / "dcp", no_dist=True)
    torch.save({"model": net.state_dict()}, tmp_path / "net.pth")
    found = read_checkpoint(tmp_path / "dcp")
    assert found.format == "torch distributed"
    assert diff(tmp_path / "dcp", tmp_path / "net.pth")


def test_one_tensor_nobody_can_read_does_not_spoil_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mixed.pth"
    torch.save(
        {
            "fc.weight": torch.ones(2, 2),
            "sparse": torch.eye(2).to_sparse(),
            "scales": torch.ones(4).to(torch.float8_e8m0fnu),
            "turned": torch.tensor([1 + 2j]).conj(),
            "small.weight": torch.quantize_per_tensor(torch.ones(3), 0.5, 2, torch.qint8),
        },
        path,
    )
    found = inspect(path)
    states = {one.name: one.state for one in found.weights}
    assert states["sparse"] == "unreadable"
    assert states["fc.weight"] == "constant"
    assert read_checkpoint(path)["turned"].tolist() == [1 - 2j]
    assert next(one for one in found.weights if one.name == "small.weight").quantized == (0.5, 2)
    assert states["scales"] == "constant"


def test_parameters_are_counted_once_and_without_buffers(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm, self.head = nn.Embedding(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 5, bias=False)
            self.head.weight = self.embed.weight

    net = Tied()
    torch.save(net.state_dict(), tmp_path / "tied.pth")
    found = inspect(tmp_path / "tied.pth")
    assert found.parameters == sum(parameter.numel() for parameter in net.parameters()) == 28
    trainable = {one.name: one.trainable for one in found.weights}
    assert (trainable["norm.weight"], trainable["norm.running_mean"]) == (True, False)


def test_a_file_that_is_not_there_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "nowhere.pth"]) != 0
    assert "no such file: nowhere.pth" in capsys.readouterr().err


def test_names_are_paired_by_their_ending_before_their_place() -> None:
    norm = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    left = {f"bert.enc.{at}.ln.weight": norm[at] for at in range(3)} | {"bert.pool.ln.weight": norm[3]}
    right = {"vision.pool.ln.weight": norm[3]} | {f"vision.enc.{at}.ln.weight": norm[at] for at in range(3)}
    found = diff(left, right)
    assert found, found.summary()
