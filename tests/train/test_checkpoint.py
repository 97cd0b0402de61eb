from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from misstep.errors import FormatError, TrainError
from misstep.train import load_checkpoint, load_param_into_net, save_checkpoint

from .conftest import BIAS, KITS, WEIGHT, Kit

ZEROS = (np.zeros((1, 4), np.float32), np.zeros(1, np.float32))


@pytest.mark.parametrize("name", ["net.ckpt", "net.pt", "net.safetensors"])
def test_a_network_comes_back_from_its_file(kit: Kit, tmp_path: Path, name: str) -> None:
    if name == "net.pt" and kit.name == "mindspore":
        name = "net"  # MindSpore's own files end in .ckpt, which is added
    save_checkpoint(kit.linear(), tmp_path / name)
    (file,) = tmp_path.iterdir()
    network = kit.linear(*ZEROS)
    saved = load_checkpoint(file, net=network)
    assert sorted(saved) == ["bias", "weight"]
    assert (saved["weight"].shape, saved["weight"].name) == ((1, 4), "weight")
    assert np.array_equal(np.asarray(saved["bias"]), BIAS)
    assert np.array_equal(kit.weight(network), WEIGHT)


@pytest.mark.mindspore
@pytest.mark.parametrize(("writer", "reader"), [("torch", "mindspore"), ("mindspore", "torch")])
def test_a_file_of_one_framework_fills_a_network_of_the_other(writer: str, reader: str, tmp_path: Path) -> None:
    save_checkpoint(KITS[writer].linear(), tmp_path / "net.ckpt")
    network = KITS[reader].linear(*ZEROS)
    load_checkpoint(tmp_path / "net.ckpt", net=network)
    assert np.array_equal(KITS[reader].weight(network), WEIGHT)


@pytest.mark.mindspore
def test_mindspore_reads_what_was_saved_here(tmp_path: Path) -> None:
    import mindspore as ms

    save_checkpoint(KITS["mindspore"].linear(), tmp_path / "net.ckpt")
    assert np.array_equal(ms.load_checkpoint(str(tmp_path / "net.ckpt"))["weight"].asnumpy(), WEIGHT)


def test_torch_reads_what_was_saved_here(tmp_path: Path) -> None:
    import torch

    save_checkpoint(KITS["torch"].linear(), tmp_path / "net.pt")
    torch.nn.Linear(4, 1).load_state_dict(torch.load(tmp_path / "net.pt"))


def test_parameters_go_into_a_network_by_name(kit: Kit) -> None:
    network = kit.linear(*ZEROS)
    assert load_param_into_net(network, {"weight": kit.tensor(WEIGHT)}) == ["bias"]
    assert np.array_equal(kit.weight(network), WEIGHT)
    with pytest.raises(TrainError, match="1 parameters of the network are not in the checkpoint: bias"):
        load_param_into_net(network, {"weight": WEIGHT}, strict_load=True)


def test_a_checkpoint_of_another_network_is_told_apart(kit: Kit, tmp_path: Path) -> None:
    save_checkpoint({"fc.weight": kit.tensor(WEIGHT)}, tmp_path / "other.ckpt")
    with pytest.raises(TrainError, match=r"none of the network's parameters; it has fc\.weight"):
        load_checkpoint(tmp_path / "other.ckpt", net=kit.linear())
    save_checkpoint({"weight": kit.tensor(np.zeros((2, 2), np.float32))}, tmp_path / "shape.ckpt")
    with pytest.raises(TrainError, match=r"weight has shape \(1, 4\) in the network and \(2, 2\) in the checkpoint"):
        load_checkpoint(tmp_path / "shape.ckpt", net=kit.linear())


def test_files_that_are_missing_or_broken_are_named(tmp_path: Path) -> None:
    save_checkpoint(KITS["torch"].linear(), tmp_path / "net.pt")
    with pytest.raises(FormatError, match=r"no checkpoint .*nets\.pt; in that directory: net\.pt"):
        load_checkpoint(tmp_path / "nets.pt")
    broken = tmp_path / "broken.pt"
    broken.write_bytes((tmp_path / "net.pt").read_bytes()[:200])
    with pytest.raises(FormatError, match=r"broken\.pt cannot be read as a checkpoint"):
        load_checkpoint(broken)


def test_tensors_of_two_frameworks_do_not_go_into_one_file(tmp_path: Path) -> None:
    mixed = {"one": KITS["torch"].tensor(WEIGHT), "two": KITS["mindspore"].tensor(WEIGHT)}
    with pytest.raises(TrainError, match="tensors of both frameworks"):
        save_checkpoint(mixed, tmp_path / "mixed.ckpt")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    save_checkpoint(KITS["torch"].linear(), path)
    before = path.read_bytes()
    with pytest.raises((RuntimeError, NotImplementedError, ValueError)):
        save_checkpoint({"weight": KITS["torch"].tensor(WEIGHT).to("meta")}, path)  # a tensor without values
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["net.safetensors"]
