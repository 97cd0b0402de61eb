"""What a run or a stranger's file says about names and places decides nothing outside of the folder asked for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from misstep.store.atomic import whole_file, write_text
from misstep.store.checkpoint import write_mindspore_ckpt, write_npz, write_safetensors
from misstep.store.checkpoint.torch_writer import write_torch
from misstep.store.foreign.export import export
from misstep.store.foreign.mindspore.layout import write_mindspore_dump
from misstep.store.foreign.msprobe import open_msprobe
from misstep.store.foreign.npyfile import write_npy
from misstep.store.foreign.sniff import source_of
from misstep.store.runs import new_run_directory

HOSTILE = ("../../escaped", "/tmp/escaped", "..", "a/../../escaped", "a\\..\\b", "x" * 300, "\x1b[31mred", "bad\0name")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_run_is_made_below_its_folder_whatever_it_is_called(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISSTEP_RUN", raising=False)
    made = new_run_directory(tmp_path / "missteps", name)
    assert made.is_dir()
    assert made.parent == tmp_path / "missteps"
    assert made.name.isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_the_name_of_a_network_stays_below_the_target(name: str, tmp_path: Path) -> None:
    source = source_of({"fc:output": np.ones(2, np.float32)})
    write_mindspore_dump(source, tmp_path / "out", net_name=name)
    assert os.listdir(tmp_path) == ["out"]
    assert len(list((tmp_path / "out" / "rank_0").rglob("*.npy"))) == 1


def test_tensors_named_like_paths_are_exported_below_the_target(tmp_path: Path) -> None:
    source = source_of({f"{name}:output": np.ones(2, np.float32) for name in ("../up", "/root/x", "a/b", "..")})
    for kind in ("npy", "mindspore"):
        export(source, tmp_path / kind, format=kind)
    assert sorted(os.listdir(tmp_path)) == ["mindspore", "npy"]
    assert len(list((tmp_path / "npy").glob("*.npy"))) == 4


def test_msprobe_names_no_file_outside_its_dump(tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", np.ones(2))
    home = tmp_path / "dump"
    home.mkdir()
    told = '{"data":{"Module.fc.Linear.forward.0":{"output":[{"dtype":"float64","shape":[2],"data_name":"%s"}]}}}'
    for name in ("../../secret.npy", str(tmp_path / "secret.npy")):
        (home / "dump.json").write_text(told % name)
        assert [entry.key for entry in open_msprobe(home).entries()] == [""]


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_safetensors(path, Breaking()),
        lambda path: write_npz(path, Breaking()),
        lambda path: write_mindspore_ckpt(path, Breaking()),
        lambda path: write_torch(path, Breaking()),
        lambda path: write_npy(path, np.array([object()])),
    ],
    ids=["safetensors", "npz", "ckpt", "torch", "npy"],
)
def test_a_writer_that_fails_leaves_the_earlier_file_and_nothing_else(write, tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.write_bytes(b"earlier")
    with pytest.raises((RuntimeError, ValueError)):
        write(target)
    assert os.listdir(tmp_path) == ["model"]
    assert target.read_bytes() == b"earlier"


class Breaking(dict):
    """Arrays of which the second cannot be had: a disk that fills up, a file that is gone."""

    def items(self):
        yield "a", np.ones(2, np.float32)
        raise RuntimeError("gone")

    def values(self):
        return (array for _, array in self.items())


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    with whole_file(target, "w") as out:
        out.write("all of it")
        assert not target.exists()
    assert target.read_text() == "all of it"
    write_text("/dev/null", "a device has nothing to be replaced")
