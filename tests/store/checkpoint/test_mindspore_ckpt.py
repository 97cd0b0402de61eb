"""MindSpore's own checkpoints are read without it, and it reads ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from misstep.store.checkpoint import read_checkpoint, write_mindspore_ckpt

pytestmark = pytest.mark.mindspore

WRITE = """
import sys, json, numpy as np, mindspore as ms
from mindspore import Parameter, Tensor, save_checkpoint
folder = sys.argv[1]
values = {name: (np.arange(-6, 6).reshape(3, 4) * 0.37).astype(name) for name in
          "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool".split()}
items = [{"name": name, "data": Tensor(value)} for name, value in values.items()]
items.append({"name": "bfloat16", "data": Tensor(values["float32"], ms.bfloat16)})
items.append({"name": "scalar", "data": Tensor(2.5, ms.float32)})
save_checkpoint(items, folder + "/theirs.ckpt", append_dict={"epoch": 7, "lr": 0.5, "word": "näh"}, crc_check=True)
save_checkpoint(items[:12], folder + "/theirs.safetensors", format="safetensors")
np.savez(folder + "/truth.npz", **values)
"""

READ = """
import sys, json, numpy as np, mindspore as ms
found = ms.load_checkpoint(sys.argv[1], crc_check=sys.argv[2] == "crc")
said = {}
for name, value in found.items():
    if hasattr(value, "asnumpy"):
        array = value.float().asnumpy() if value.dtype == ms.bfloat16 else value.asnumpy()
        said[name] = [str(value.dtype), list(value.shape), array.astype("float64").ravel().tolist()]
    else:
        said[name] = value
print("said" + json.dumps(said))
"""


def in_mindspore(script: str, *arguments: str) -> str:
    """A script in a process of its own: MindSpore and torch need not share one."""
    environment = {**os.environ, "GLOG_v": "3"}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=environment, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_what_mindspore_saved_is_read_without_it(tmp_path: Path) -> None:
    in_mindspore(WRITE, str(tmp_path))
    back = read_checkpoint(tmp_path / "theirs.ckpt")
    with np.load(tmp_path / "truth.npz") as truth:
        for name in truth:
            assert (back.tensors[name].dtype, back[name].tobytes()) == (name, truth[name].tobytes())
        as_float = back["bfloat16"].astype(np.float32)
        np.testing.assert_allclose(as_float, truth["float32"], rtol=2**-8)
        other = read_checkpoint(tmp_path / "theirs.safetensors")
        assert {name: other[name].tobytes() for name in other} == {name: truth[name].tobytes() for name in truth}
    assert (back.format, back.checksum, back.tensors["bfloat16"].dtype) == ("mindspore", "right", "bfloat16")
    assert (back["scalar"].shape, back["scalar"].item(), back.extras["word"]) == ((), 2.5, "näh")
    assert (back["epoch"].item(), back["lr"].item()) == (7, 0.5)


@pytest.mark.parametrize("crc", ["crc", "plain"])
def test_mindspore_reads_what_we_wrote(tmp_path: Path, crc: str) -> None:
    import ml_dtypes

    values = np.arange(-6, 6).reshape(3, 4) * 0.37
    names = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool".split()  # noqa: SIM905
    given = {name: np.abs(values).astype(name) for name in names}
    given["bf"] = values.astype(ml_dtypes.bfloat16)
    given["scalar"] = np.asarray(2.5, np.float32)
    write_mindspore_ckpt(
        tmp_path / "ours.ckpt", given, extras={"epoch": 7, "word": "näh"}, crc=crc == "crc", slice_bytes=1 << 20
    )
    said = json.loads(in_mindspore(READ, str(tmp_path / "ours.ckpt"), crc).split("said", 1)[1])
    for name, array in given.items():
        assert said[name][1] == list(array.shape)
        assert said[name][2] == array.astype(np.float64).ravel().tolist()
    assert (said["bf"][0], said["word"], said["epoch"]) == ("BFloat16", "näh", ["Int64", [], [7.0]])
