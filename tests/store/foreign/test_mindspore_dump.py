"""A real graph-mode dump of MindSpore, made here in a process of its own, read as a run of tensors."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from misstep.cli import main
from misstep.cli.commands.live.ui import folder_of_run
from misstep.compare.layers import diff
from misstep.errors import TensorUnavailable
from misstep.store.foreign.export import export
from misstep.store.foreign.mindspore.dump import FILE_NAME, MindSporeDump, open_mindspore_dump
from misstep.store.foreign.sniff import source_of
from misstep.store.foreign.source import ArraySource
from misstep.store.reading.reader import open_run
from misstep.store.runs import list_runs

SCRIPT = """
import json, os, sys
import numpy as np
folder, factor = sys.argv[1], float(sys.argv[2])
settings = {"common_dump_settings": {"op_debug_mode": 0, "dump_mode": 0, "path": folder, "net_name": "Net",
            "iteration": "0|2", "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0]},
            "e2e_dump_settings": {"enable": True, "trans_flag": True}}
with open(folder + ".json", "w") as file:
    json.dump(settings, file)
os.environ["MINDSPORE_DUMP_CONFIG"] = folder + ".json"
import mindspore as ms
from mindspore import nn
ms.set_context(mode=ms.GRAPH_MODE)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(8, 16)
        self.bn = nn.BatchNorm1d(16)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(16, 4)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        x = self.bn(x)
        return self.fc2(x)

net, rng = Net(), np.random.default_rng(0)
for parameter in net.trainable_params():
    value = rng.standard_normal(parameter.shape).astype(np.float32)
    parameter.set_data(ms.Tensor(value * (factor if parameter.name == "bn.gamma" else 1.0)))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step.set_train()
x = ms.Tensor(rng.standard_normal((4, 8)).astype(np.float32))
for _ in range(3):
    step(x, ms.Tensor(np.array([0, 1, 2, 3], np.int32)))
"""


def dumped(folder: Path, factor: float) -> Path:
    # MindSpore takes letters, digits, - and _ in the path, nothing else.
    percent = round(100 * factor)
    script = folder / f"train{percent}.py"
    script.write_text(SCRIPT)
    out = folder / f"dump{percent}"
    done = subprocess.run(
        [sys.executable, str(script), str(out), str(factor)],
        capture_output=True,
        text=True,
        env={**os.environ, "GLOG_v": "3", "OMP_NUM_THREADS": "1"},
        timeout=280,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return out


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dumped(tmp_path_factory.mktemp("mindspore"), 1.0)


@pytest.mark.mindspore
class TestARealDump:
    def test_every_file_is_an_entry_and_every_array_reads(self, real: Path) -> None:
        dump = open_mindspore_dump(real)
        files = {str(file) for file in real.rglob("*.npy")}
        assert {entry.key for entry in dump.entries()} == files
        for entry in dump.entries():
            np.testing.assert_array_equal(dump.array(entry), np.load(entry.key))
        assert (dump.steps, {entry.rank for entry in dump.entries()}) == ([0, 2], {0})

    def test_operators_have_their_full_names_in_the_order_of_execution(self, real: Path) -> None:
        listed = (real / "rank_0" / "execution_order" / "ms_execution_order_graph_0.csv").read_text().split("\n")[1:]
        made = ("output", "grad_input")
        names = [entry.name for entry in MindSporeDump(real).entries() if entry.step == 0 and entry.role in made]
        order = [name for name in listed if name]
        assert list(dict.fromkeys(names)) == order
        assert any(name.endswith("fc1-Dense/MatMul-op0") for name in order)

    def test_source_lines_are_the_users_own(self, real: Path) -> None:
        lines = {entry.name: entry.source_line for entry in MindSporeDump(real).entries()}
        first = next(line for name, line in lines.items() if name.endswith("fc1-Dense/MatMul-op0"))
        backward = next(line for name, line in lines.items() if name.endswith("Grad_BatchNorm/BatchNormGrad-op0"))
        assert first.endswith("`x = self.relu(self.fc1(x))`")
        assert backward.endswith("`x = self.bn(x)`")
        assert first.split(":")[0] == str(real.parent / "train100.py")

    def test_parameters_keep_their_dots_and_inputs_are_no_parameters(self, real: Path) -> None:
        roles = {entry.name: entry.role for entry in MindSporeDump(real).entries() if entry.node_type == "Parameter"}
        assert (roles["fc1.weight"], roles["moments.bn.gamma"]) == ("param", "buffer")
        assert roles["inputs0"] == "input"

    def test_gradients_are_told_from_activations(self, real: Path) -> None:
        entries = [entry for entry in MindSporeDump(real).entries() if entry.step == 0]
        backward = {entry.role for entry in entries if entry.name.startswith("Gradients/")}
        assert backward == {"grad_input", "grad_output"}
        assert {entry.node_type for entry in entries if entry.role == "grad"} == {"ApplyMomentum"}

    def test_the_graph_joins_operators_and_parameters(self, real: Path) -> None:
        graph = MindSporeDump(real).graph
        assert graph is not None
        matmul = next(
            node for node in graph.nodes if node.name.endswith("fc2-Dense/MatMul-op0") and node.phase == "forward"
        )
        weight = graph.node("fc2.weight")
        assert weight is not None
        assert weight.kind == "parameter"
        feeding = {graph.nodes[edge.source].name.rsplit("/", 1)[-1] for edge in graph.producers(matmul.index)}
        assert any(name.startswith("Load") for name in feeding)
        assert matmul.source is not None
        assert matmul.source.code == "return self.fc2(x)"

    def test_its_graph_files_open_as_runs_and_are_told(self, real: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (text,), (binary,) = (real / "rank_0" / "graphs").glob("*.ir"), (real / "rank_0" / "graphs").glob("*.pb")
        graph = open_run(text).graph()
        matmul = next(
            node for node in graph.nodes if node.name.endswith("fc2-Dense/MatMul-op0") and node.phase == "forward"
        )
        assert (matmul.type, matmul.source.code if matmul.source else "") == ("MatMul", "return self.fc2(x)")
        feeding = {graph.nodes[edge.source].name for edge in graph.producers(matmul.index)}
        assert "fc2.weight" in feeding
        for opened in (text, binary, text.parent):
            assert main(["show", str(opened)]) == 0
            told = capsys.readouterr().out
            assert "operators (" in told
            assert "MatMul" in told
            assert "no NaN" not in told
            folder = folder_of_run(opened)  # misstep ui graph.ir
            assert folder is not None
            assert [run.name for run in list_runs(folder)] == [opened.name]

    def test_two_dumps_with_one_scaled_weight_part_at_that_operator(self, real: Path) -> None:
        other = dumped(real.parent, 1.01)
        found = diff(f"{real}@0", f"{other}@0")
        assert found.cause is not None
        assert found.cause.entry.node_type == "BatchNorm"
        assert found.cause.note == "the right side is 1.01 times the left"
        assert all(row.close for row in found.rows if row.entry.order < found.cause.entry.order)


def test_our_dump_layout_has_mindspores_names_and_statistics(tmp_path: Path) -> None:
    given = {
        "net/fc1:input@3": np.ones((2, 3), np.float32),
        "net/fc1:output@3": np.array([[1.0, -2.0], [0.0, np.nan]], np.float32),
        "net.fc1.weight:param@3": np.zeros((2, 3), np.float32),
    }
    export(ArraySource(given, types={"net/fc1": "MatMul"}), tmp_path, format="mindspore")
    folder = tmp_path / "rank_0" / "Net" / "0" / "3"
    files = sorted(file.name for file in folder.glob("*.npy"))
    assert all(FILE_NAME.fullmatch(name) for name in files)
    assert files[0].startswith("MatMul.net_fc1.0.0.") and files[2].startswith("Parameter.net_fc1_weight.0.0.")  # noqa: PT018
    back = source_of(tmp_path)
    assert [str(entry.address) for entry in back.entries()] == [
        "net/fc1:input@3#0",
        "net/fc1:output@3#0",
        "net.fc1.weight:param@3#0",
    ]
    with open(folder / "statistic.csv", newline="") as table:
        row = list(csv.DictReader(table))[1]
    numbers = {name: row[name] for name in ("Max Value", "Min Value", "NaN Count", "Zero Count", "Negative Zero Count")}
    assert numbers == {
        "Max Value": "1",
        "Min Value": "-2",
        "NaN Count": "1",
        "Zero Count": "1",
        "Negative Zero Count": "1",
    }
    assert isinstance(back, MindSporeDump)
    assert back.statistics(back.entries()[1])["NaN Count"] == "1"


def test_what_goes_through_our_dump_layout_comes_back_as_it_was(tmp_path: Path) -> None:
    deep = "encoder." + ".".join(f"layer_with_a_long_name_{number}" for number in range(12)) + ".fc"
    given = {
        "net/fc.1:input@3": np.ones((2, 3), np.float32),
        "net/fc.1:output@3": np.ones((2, 3), ml_dtypes.bfloat16),
        "net/fc.1~2:output@3": np.zeros((2, 3), np.float32),
        "net/fc.1:grad_output@3": np.ones((2, 3), np.float32),
        "net/fc.1:grad_input.1@3": np.ones((2, 1), np.complex64),
        f"{deep}:output@3": np.full(2, 7, np.int64),
        "embed.weight:grad@3": np.ones(4, np.float16),
        "embed.weight:param@3": np.zeros((), np.bool_),
        "embed.weight:param@4": np.zeros(0, np.float64),
        "mean:buffer@4": np.ones(1, np.float32),
    }
    source = ArraySource(given, types={"net/fc.1": "MatMul", "embed.weight": "Parameter"})
    export(source, tmp_path, format="mindspore")
    back = source_of(tmp_path)
    plain = [replace(entry, rank=None, key="") for entry in back.entries()]
    assert plain == [replace(entry, key="") for entry in source.entries()]
    for before, after in zip(source.entries(), back.entries()):
        assert back.array(after).dtype == source.array(before).dtype
        assert back.array(after).tobytes() == source.array(before).tobytes()
    for file in tmp_path.rglob("*.npy"):
        file.unlink()
    assert [str(entry.address) for entry in open_mindspore_dump(tmp_path).entries()] == [f"{name}#0" for name in given]


def test_a_dump_of_statistics_alone_is_listed_and_says_why_values_are_missing(tmp_path: Path) -> None:
    export(ArraySource({"fc:output@0": np.ones(3, np.float32)}, types={"fc": "MatMul"}), tmp_path, format="mindspore")
    for file in tmp_path.rglob("*.npy"):
        file.unlink()
    dump = open_mindspore_dump(tmp_path)
    (entry,) = dump.entries()
    assert (entry.name, entry.shape, entry.dtype) == ("fc", (3,), "float32")
    with pytest.raises(TensorUnavailable, match="saved_data"):
        dump.array(entry)
