"""PyTorch's files are read as data: every tensor, and never a line of pickled code."""

from __future__ import annotations

import argparse
import collections
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from misstep.errors import FormatError
from misstep.store.checkpoint import read_checkpoint

DTYPES = (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
)  # fmt: skip
BOTH_FORMATS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before 1.6"])


def raw(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())


@BOTH_FORMATS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_comes_back_bit_for_bit(tmp_path: Path, dtype: torch.dtype, zipped: bool) -> None:
    bytes_each = torch.empty(0, dtype=dtype).element_size()
    generator = torch.Generator().manual_seed(0)
    high = 2 if dtype is torch.bool else 256
    whole = torch.randint(0, high, (12 * bytes_each,), dtype=torch.uint8, generator=generator).view(dtype).view(3, 4)
    given = {"whole": whole, "turned": whole.t(), "part": whole[1:, 2:], "scalar": whole[0, 0]}
    torch.save(given, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    back = read_checkpoint(tmp_path / "x.pt")
    assert {name: (back[name].shape, back[name].tobytes()) for name in back} == {
        name: (tuple(tensor.shape), raw(tensor)) for name, tensor in given.items()
    }


@BOTH_FORMATS
def test_a_training_checkpoint_is_read_with_its_optimizer_and_its_numbers(tmp_path: Path, zipped: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    saved = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "args": argparse.Namespace(name="try"),
        "best": np.float32(0.5),
        "history": np.arange(3.0),
        "seen": collections.defaultdict(list, {"a": [1]}),
    }
    torch.save(saved, tmp_path / "x.pth", _use_new_zipfile_serialization=zipped)
    back = read_checkpoint(tmp_path / "x.pth")
    np.testing.assert_array_equal(back["model.0.weight"], model[0].weight.detach().numpy())
    np.testing.assert_array_equal(
        back["optimizer.state.0.exp_avg"], optimizer.state[model[0].weight]["exp_avg"].numpy()
    )
    np.testing.assert_array_equal(back["history"], np.arange(3.0))
    assert (back.extras["epoch"], back.extras["args.name"], back.extras["best"]) == (3, "try", 0.5)
    assert back.extras["optimizer.param_groups.0.lr"] == 0.01
    assert back.tensors["optimizer.state.0.exp_avg"].section == "optimizer"


def test_quantised_tensors_keep_their_integers_scale_and_zero_point(tmp_path: Path) -> None:
    # Per-tensor quantisation as torch writes it, built from its parts because creating one is deprecated.
    tensor = torch._make_per_tensor_quantized_tensor(torch.tensor([1, -2, 3], dtype=torch.int8), 0.1, 3)
    torch.save({"q": tensor}, tmp_path / "q.pt")
    held = read_checkpoint(tmp_path / "q.pt").tensors["q"]
    assert (held.load().tolist(), held.quantized) == ([1, -2, 3], (0.1, 3))


class Boom:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch hacked",)


@pytest.mark.parametrize("evil", [Boom(), {"w": torch.ones(2), "x": Boom()}], ids=["alone", "beside a tensor"])
def test_pickled_code_is_refused_by_name_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evil: object
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(evil, "evil.pth")
    with pytest.raises(FormatError, match=r"holds a pickled (posix|os)\.system.*state_dict"):
        read_checkpoint("evil.pth")
    assert not Path("hacked").exists()


def test_a_whole_model_is_refused_with_the_way_out(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "model.pth")
    with pytest.raises(FormatError, match=r"torch\.nn\.modules\.linear\.Linear.*torch\.save\(model\.state_dict\(\)"):
        read_checkpoint(tmp_path / "model.pth")


def test_a_tensor_that_reaches_outside_its_storage_is_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.arange(4.0)}, tmp_path / "w.pth")
    with zipfile.ZipFile(tmp_path / "w.pth") as good, zipfile.ZipFile(tmp_path / "evil.pth", "w") as bad:
        for info in good.infolist():
            content = good.read(info)
            if info.filename.endswith("data.pkl"):
                # The size (4,) of the tensor becomes (127,): BININT1 is the byte K.
                assert content.count(b"K\x04\x85") == 1
                content = content.replace(b"K\x04\x85", b"K\x7f\x85")
            bad.writestr(info.filename, content)
    with pytest.raises(FormatError, match="reaches outside its storage"):
        read_checkpoint(tmp_path / "evil.pth")


def test_reading_needs_no_torch(tmp_path: Path) -> None:
    torch.save({"w": torch.arange(4.0)}, tmp_path / "w.pth")
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from misstep.store.checkpoint import read_checkpoint\n"
        f"print(read_checkpoint({str(tmp_path / 'w.pth')!r})['w'].tolist())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0.0, 1.0, 2.0, 3.0]"


def test_a_bare_pickle_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "x.pth").write_bytes(pickle.dumps({"w": 1}))
    with pytest.raises(FormatError, match="no PyTorch checkpoint"):
        read_checkpoint(tmp_path / "x.pth")
