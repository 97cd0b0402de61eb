"""Folders that other tools wrote: plain .npy, troubleshooter's names, msprobe's dumps."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

from misstep.errors import FormatError, MissingPackage, TensorUnavailable
from misstep.store.checkpoint import write_npz, write_safetensors
from misstep.store.foreign.export import export, statistics
from misstep.store.foreign.folder import Named, read_name
from misstep.store.foreign.msprobe import open_msprobe
from misstep.store.foreign.npyfile import read_npy
from misstep.store.foreign.sniff import Reader, as_array, register, source_of
from misstep.store.foreign.source import ArraySource, select


@pytest.mark.parametrize(
    ("stem", "meaning"),
    [
        ("encoder.0:output.1@7", Named("encoder.0", "output", 1, step=7)),
        ("0_fc1_backward_float32_12", Named("fc1", "grad_output", 0, dtype="float32", order=12)),
        ("fc1.weight_bfloat16_3", Named("fc1.weight", "param", 0, dtype="bfloat16", order=3)),
        ("net.fc_float16_0", Named("net.fc", "output", 0, dtype="float16", order=0)),
        ("layer1.conv.output.0", Named("layer1.conv", "output", 0)),
        ("layer1.conv_input_2", Named("layer1.conv", "input", 2)),
        ("fc.weight", Named("fc.weight", "param")),
        ("anything", Named("anything", "output")),
    ],
)
def test_a_file_name_says_what_its_tensor_is(stem: str, meaning: Named) -> None:
    assert read_name(stem) == meaning


def test_numbers_in_names_count_as_numbers(tmp_path: Path) -> None:
    for name in ("layer10", "layer2", "layer1"):
        np.save(tmp_path / f"{name}.npy", np.zeros(2))
    assert [entry.name for entry in source_of(tmp_path).entries()] == ["layer1", "layer2", "layer10"]


def test_troubleshooters_counter_is_the_order(tmp_path: Path) -> None:
    np.save(tmp_path / "b_float32_0.npy", np.zeros(2, np.float32))
    np.save(tmp_path / "a_float32_1.npy", np.zeros(2, np.float32))
    assert [entry.name for entry in source_of(tmp_path).entries()] == ["b", "a"]


def test_a_tree_keeps_order_type_line_and_long_names(tmp_path: Path) -> None:
    long = ".".join(["a_rather_long_scope"] * 14)
    given = {"z.fc:output@0": np.ones(2), f"{long}/op:input.1@0": np.zeros(3), "z.fc~2:output@0": np.ones(1)}
    export(ArraySource(given, types={"z.fc": "Linear"}), tmp_path / "tree", format="npy")
    back = source_of(tmp_path / "tree")
    assert [(str(entry.address), entry.node_type) for entry in back.entries()] == [
        ("z.fc:output@0", "Linear"),
        (f"{long}/op:input.1@0", ""),
        ("z.fc~2:output@0", "Linear"),
    ]


def test_a_file_with_many_tensors_and_a_file_with_one_live_in_one_folder(tmp_path: Path) -> None:
    write_npz(tmp_path / "several.npz", {"a": np.ones(2), "b": np.zeros(3)})
    write_safetensors(tmp_path / "fc.weight.safetensors", {"data": np.ones(4)})
    torch.save(torch.arange(3.0), tmp_path / "loss.pt")
    found = source_of(tmp_path)
    assert {entry.name: found.array(entry).tolist() for entry in found.entries()} == {
        "fc.weight": [1.0] * 4,
        "loss": [0.0, 1.0, 2.0],
        "several/a": [1.0, 1.0],
        "several/b": [0.0, 0.0, 0.0],
    }


def test_fortran_order_and_large_files_read_as_numpy_reads_them(tmp_path: Path) -> None:
    large = np.arange(40_000, dtype=np.float64).reshape(200, 200)
    np.save(tmp_path / "c.npy", large)
    np.save(tmp_path / "f.npy", np.asfortranarray(large))
    np.testing.assert_array_equal(read_npy(tmp_path / "c.npy"), large)
    np.testing.assert_array_equal(read_npy(tmp_path / "f.npy"), large)


def test_object_arrays_are_refused_and_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match="Python objects"):
        read_npy(tmp_path / "x.npy")


def test_a_torn_npy_says_how_much_is_missing(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(1000))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-24])
    with pytest.raises(FormatError, match="cut short by 24 bytes"):
        read_npy(tmp_path / "x.npy")


def msprobe_tensor(folder: Path, name: str, array: np.ndarray, *, npy: bool = False) -> dict[str, object]:
    folder.mkdir(parents=True, exist_ok=True)
    file = f"{name}.{'npy' if npy else 'pt'}"
    if npy:
        np.save(folder / file, array)
    else:
        torch.save(torch.from_numpy(array), folder / file)
    return {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": list(array.shape),
        "Max": float(array.max()),
        "Min": float(array.min()),
        "Mean": float(array.mean()),
        "Norm": float(np.linalg.norm(array)),
        "data_name": file,
    }


@pytest.mark.parametrize("npy", [True, False], ids=["npy", "pt"])
def test_an_msprobe_dump_is_read_with_roles_calls_and_lines(tmp_path: Path, npy: bool) -> None:
    rank = tmp_path / "step3" / "rank0"
    data = rank / "dump_tensor_data"
    x, w, y = (np.arange(n, dtype=np.float32) for n in (4, 6, 3))
    body = {
        "Module.net.fc1.Linear.forward.0": {
            "input_args": [msprobe_tensor(data, "Module.net.fc1.Linear.forward.0.input.0", x, npy=npy)],
            "input_kwargs": {},
            "parameters": {
                "weight": msprobe_tensor(data, "Module.net.fc1.Linear.forward.0.parameters.weight", w, npy=npy)
            },
            "output": [msprobe_tensor(data, "Module.net.fc1.Linear.forward.0.output.0", y, npy=npy)],
        },
        "Functional.relu.1.forward": {
            "input_args": [
                msprobe_tensor(data, "Functional.relu.1.forward.input.0", y, npy=npy),
                {"type": "int", "value": 1},
            ],
            "output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3], "Max": 2.0}],
        },
        "Module.net.fc1.Linear.backward.0": {
            "input": [msprobe_tensor(data, "Module.net.fc1.Linear.backward.0.input.0", y, npy=npy)],
            "output": [None, msprobe_tensor(data, "Module.net.fc1.Linear.backward.0.output.0", x, npy=npy)],
        },
        "Module.net.fc1.Linear.parameters_grad": {
            "weight": [msprobe_tensor(data, "Module.net.fc1.Linear.parameters_grad.weight", w, npy=npy)]
        },
    }
    said = {"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": "/elsewhere", "data": body}
    (rank / "dump.json").write_text(json.dumps(said))
    frames = ["File /site-packages/torch/nn.py, line 5, in forward", "File /home/me/train.py, line 12, in step"]
    (rank / "stack.json").write_text(json.dumps({"Module.net.fc1.Linear.forward.0": frames}))
    found = source_of(tmp_path)
    assert [(str(entry.address), entry.node_type) for entry in found.entries()] == [
        ("net.fc1:input@3#0", "Linear"),
        ("net.fc1.weight:param@3#0", "Linear"),
        ("net.fc1:output@3#0", "Linear"),
        ("Functional.relu.1:input@3#0", "relu"),
        ("Functional.relu.1:output@3#0", "relu"),
        ("net.fc1:grad_output@3#0", "Linear"),
        ("net.fc1:grad_input@3#0", "Linear"),
        ("net.fc1.weight:grad@3#0", "Linear"),
    ]
    assert found.entries()[0].source_line == "/home/me/train.py:12"
    np.testing.assert_array_equal(found.array(found.entries()[1]), w)
    with pytest.raises(TensorUnavailable, match="only the statistics"):
        found.array(found.entries()[4])
    assert open_msprobe(tmp_path).statistics(found.entries()[4]) == {"Max": 2.0}


def test_a_step_is_chosen_by_what_stands_behind_the_path(tmp_path: Path) -> None:
    export(ArraySource({"fc:output@1": np.ones(1), "fc:output@2": np.zeros(1)}), tmp_path / "tree", format="npy")
    chosen = source_of(f"{tmp_path / 'tree'}@2")
    assert [str(entry.address) for entry in chosen.entries()] == ["fc:output@2"]
    with pytest.raises(TensorUnavailable, match="nothing of step 9; steps held: 1, 2"):
        select(source_of(tmp_path / "tree"), step=9)


def test_tensors_of_a_framework_become_arrays_of_their_type() -> None:
    assert as_array(torch.ones(2, dtype=torch.bfloat16)).dtype == ml_dtypes.bfloat16
    assert source_of({"w": torch.ones(2, requires_grad=True)}).entries()[0].dtype == "float32"


def test_another_kind_of_folder_can_be_taught(tmp_path: Path) -> None:
    (tmp_path / "mine.marker").touch()
    register(Reader("mine", lambda path: (path / "mine.marker").exists(), lambda path: ArraySource({"a": np.ones(1)})))
    assert source_of(tmp_path).entries()[0].name == "a"


def test_what_is_nothing_known_is_refused_with_the_kinds(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="MindSpore dump"):
        source_of(tmp_path)
    with pytest.raises(FormatError, match="no such file"):
        source_of(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="cannot find tensors in a int"):
        source_of(3)


@pytest.mark.parametrize(("format", "file"), [("npz", "run.npz"), ("safetensors", "run.safetensors")])
def test_an_exported_run_reads_back_with_its_addresses(tmp_path: Path, format: str, file: str) -> None:
    given = {"net/fc:input@3": np.ones(2), "net/fc~2:output.1@3": np.zeros(3), "net.fc.weight:param@3": np.ones(1)}
    export(ArraySource(given), tmp_path / file, format=format)
    back = source_of(tmp_path / file)
    assert {str(entry.address): back.array(entry).tolist() for entry in back.entries()} == {
        name: array.tolist() for name, array in given.items()
    }


def test_parquet_asks_for_what_it_needs(tmp_path: Path) -> None:
    source = ArraySource({"fc:output@3": np.array([1.0, np.nan, -3.0])})
    (row,) = statistics(source)
    assert (row["address"], row["nan"], row["min"], row["shape"]) == ("fc:output@3", 1, -3.0, [3])
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(MissingPackage, match="pyarrow is needed for writing Parquet"):
            export(source, tmp_path / "x.parquet", format="parquet")
    else:
        import pyarrow.parquet

        export(source, tmp_path / "x.parquet", format="parquet")
        assert pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()[0]["nan"] == 1


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="npy, npz, safetensors, ckpt, pth, mindspore, parquet"):
        export(ArraySource({"a": np.ones(1)}), tmp_path / "x", format="hdf5")
