"""What goes into a file comes out of it, bit for bit, for every element type a framework has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.checkpoint import read_checkpoint, write_mindspore_ckpt, write_npz, write_safetensors
from misstep.store.foreign.elements import dtype_named
from misstep.store.foreign.export import export
from misstep.store.foreign.sniff import source_of
from misstep.store.foreign.source import ArraySource

TYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
]
MINDSPORE_LACKS = {"float8_e4m3fnuz", "float8_e5m2fnuz"}


def sample(name: str) -> NDArray[Any]:
    """Every kind of value the type has: signs, extremes, NaN, Inf, subnormals; as a 3×7 array with odd strides."""
    dtype = dtype_named(name)
    assert dtype is not None
    if name == "bool":
        flat = np.arange(21) % 3 == 0
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        flat = np.array([info.min, info.max, *range(19)], dtype=dtype)
    elif dtype.kind == "c":
        flat = (np.linspace(-3, 3, 21) + 1j * np.linspace(5, -5, 21)).astype(dtype)
        flat[3] = complex(np.nan, np.inf)
    else:
        info = ml_dtypes.finfo(dtype)
        edges = [0.0, -0.0, info.max, info.min, info.smallest_subnormal, np.nan, np.inf, -np.inf]
        with np.errstate(all="ignore"):
            flat = np.array([*edges, *np.linspace(-2, 2, 13)]).astype(dtype)
    return np.asarray(flat.reshape(7, 3).T)


def bits(array: NDArray[Any]) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.name, array.shape, array.tobytes()


WRITERS: dict[str, Callable[[Path, dict[str, NDArray[Any]]], None]] = {
    "model.npz": write_npz,
    "model.safetensors": write_safetensors,
    "model.ckpt": write_mindspore_ckpt,
}


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize("name", TYPES)
def test_a_checkpoint_gives_back_every_bit(tmp_path: Path, file: str, name: str) -> None:
    given = {"layer.weight": sample(name), "scalar": sample(name)[1, 1].reshape(()), "empty": sample(name)[:0]}
    if file == "model.ckpt" and name in MINDSPORE_LACKS:
        with pytest.raises(FormatError, match=f"is {name}, which a MindSpore checkpoint cannot hold"):
            WRITERS[file](tmp_path / file, given)
        return
    WRITERS[file](tmp_path / file, given)
    back = read_checkpoint(tmp_path / file)
    assert {name: bits(back[name]) for name in back} == {name: bits(array) for name, array in given.items()}


@pytest.mark.parametrize("name", TYPES)
def test_a_tree_of_npy_gives_back_every_bit(tmp_path: Path, name: str) -> None:
    given = {"encoder.0:output.1@7": sample(name), "fc.weight:param": sample(name)[0]}
    export(ArraySource(given), tmp_path / "tree", format="npy")
    back = source_of(tmp_path / "tree")
    assert {str(entry.address): bits(back.array(entry)) for entry in back.entries()} == {
        name: bits(array) for name, array in given.items()
    }


@pytest.mark.parametrize("name", [name for name in TYPES if name not in MINDSPORE_LACKS])
def test_mindspores_dump_layout_gives_back_every_value(tmp_path: Path, name: str) -> None:
    given = {"encoder.0:output": sample(name), "fc.weight:param": sample(name)}
    export(ArraySource(given, types={"encoder.0": "Linear"}), tmp_path / "dump", format="mindspore")
    back = source_of(tmp_path / "dump")
    for entry, array in zip(back.entries(), given.values()):
        read = back.array(entry)
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read.astype(np.complex128), array.astype(np.complex128))


def test_npz_and_safetensors_are_what_other_programs_read(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    given = {"a": sample("float32"), "b": sample("int64")}
    write_safetensors(tmp_path / "x.safetensors", given, metadata={"format": "pt"})
    write_npz(tmp_path / "x.npz", given)
    with np.load(tmp_path / "x.npz") as theirs:
        assert {name: bits(theirs[name]) for name in theirs} == {name: bits(array) for name, array in given.items()}
    loaded = load_file(tmp_path / "x.safetensors")
    assert {name: bits(array) for name, array in loaded.items()} == {name: bits(array) for name, array in given.items()}


def test_a_tensor_cut_into_slices_is_put_together(tmp_path: Path) -> None:
    given = {"big": np.arange(1000, dtype=np.float32).reshape(10, 100), "small": np.ones(3)}
    write_mindspore_ckpt(tmp_path / "sliced.ckpt", given, slice_bytes=512, crc=True)
    back = read_checkpoint(tmp_path / "sliced.ckpt")
    assert (bits(back["big"]), bits(back["small"]), back.checksum) == (
        bits(given["big"]),
        bits(given["small"]),
        "right",
    )


def test_a_flipped_bit_under_a_checksum_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "model.ckpt"
    write_mindspore_ckpt(file, {"w": np.zeros(100, np.float32)}, crc=True)
    whole = bytearray(file.read_bytes())
    whole[60] ^= 1
    file.write_bytes(whole)
    with pytest.raises(FormatError, match="checksum"):
        read_checkpoint(file)


@pytest.mark.parametrize("file", WRITERS)
def test_a_file_cut_short_is_an_error_that_says_so(tmp_path: Path, file: str) -> None:
    WRITERS[file](tmp_path / file, {"w": np.arange(1000, dtype=np.float32)})
    whole = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError):
        read_checkpoint(tmp_path / file)["w"]


def test_a_file_of_nothing_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ckpt").write_bytes(b"\xde\xad\xbe\xef" * 20)
    with pytest.raises(FormatError, match="none of the known checkpoint formats"):
        read_checkpoint(tmp_path / "x.ckpt")
