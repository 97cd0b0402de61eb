"""Checkpoints from one framework to the other and back, by rules alone and by the network that will load them."""

from __future__ import annotations

import json
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from batches import write_batch
from twin_nets import HERE, NAMES, Twins

from misstep.errors import MigrationError
from misstep.migration.convert import convert, plan
from misstep.store.checkpoint import read_checkpoint, write_safetensors

pytestmark = pytest.mark.mindspore


def weights(path: Path) -> dict[str, np.ndarray]:
    held = read_checkpoint(path)
    return {name: np.array(held[name]) for name in held}


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_comes_back_bit_for_bit_and_loads_fully(name: str, twins: Twins, tmp_path: Path) -> None:
    left, right = twins(name)
    torch.save(left.model.state_dict(), tmp_path / "a.pth")
    ours, theirs = f"{HERE}/torch_{name}.py:build", f"{HERE}/mindspore_{name}.py:build"
    data = str(write_batch(tmp_path, name))
    convert(plan(str(tmp_path / "a.pth"), str(tmp_path / "b.ckpt"), like=theirs, of=ours, data=data))
    not_loaded, _ = ms.load_param_into_net(right.model, ms.load_checkpoint(str(tmp_path / "b.ckpt")))
    assert not_loaded == []
    convert(plan(str(tmp_path / "b.ckpt"), str(tmp_path / "c.pth"), like=ours, of=theirs, data=data))
    wanted = {k: v.numpy() for k, v in left.model.state_dict().items() if "num_batches_tracked" not in k}
    found = weights(tmp_path / "c.pth")
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[key], wanted[key]) for key in wanted)


@pytest.mark.parametrize("name", ["cnn", "lstm", "encoder", "conv1d", "embedding", "prelu", "groupnorm", "decoder"])
def test_rules_alone_name_every_parameter_as_the_network_does(name: str, twins: Twins, tmp_path: Path) -> None:
    left, right = twins(name)
    torch.save(left.model.state_dict(), tmp_path / "a.pth")
    planned = plan(str(tmp_path / "a.pth"), str(tmp_path / "b.ckpt"))
    wanted = {one.name: one.shape for one in right.half.parameters(right.model)}
    assert {move.target: move.shape for move in planned.moves} == wanted


def test_shards_are_read_through_their_index(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "one.safetensors", {"fc.weight": np.ones((2, 3), np.float32)})
    write_safetensors(tmp_path / "two.safetensors", {"fc.bias": np.zeros(2, np.float32)})
    files = {"fc.weight": "one.safetensors", "fc.bias": "two.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    convert(plan(str(tmp_path / "model.safetensors.index.json"), str(tmp_path / "b.ckpt")))
    assert weights(tmp_path / "b.ckpt").keys() == {"fc.weight", "fc.bias"}


def test_drop_rename_and_dtype_are_applied(tmp_path: Path) -> None:
    torch.save({"net.fc.weight": torch.ones(2, 2), "net.head.weight": torch.ones(2, 2)}, tmp_path / "a.pth")
    options = {"drop": ["*head*"], "rename": ["net.*=model.*"], "dtype": "float16"}
    convert(plan(str(tmp_path / "a.pth"), str(tmp_path / "b.ckpt"), **options))  # type: ignore[arg-type]
    found = weights(tmp_path / "b.ckpt")
    assert {name: value.dtype for name, value in found.items()} == {"model.fc.weight": np.float16}


def test_two_names_that_become_one_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    torch.save({"a.weight": torch.ones(2, 2), "b.weight": torch.ones(2, 2)}, tmp_path / "a.pth")
    with pytest.raises(MigrationError, match="would both become c"):
        plan(str(tmp_path / "a.pth"), str(tmp_path / "b.ckpt"), rename=["a.weight=c", "b.weight=c"])
    assert list(tmp_path.iterdir()) == [tmp_path / "a.pth"]


def test_what_a_file_cannot_tell_is_said_to_be_uncertain(tmp_path: Path) -> None:
    torch.save({"mystery.weight": torch.ones(5, 4), "fc.weight": torch.ones(5, 4)}, tmp_path / "a.pth")
    planned = plan(str(tmp_path / "a.pth"), str(tmp_path / "b.ckpt"))
    assert [move.source for move in planned.uncertain] == ["mystery.weight"]
