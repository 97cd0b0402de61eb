"""Event files that MindSpore really wrote, in a process of its own, read without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from misstep.cli import main
from misstep.cli.commands.live.ui import folder_of_run
from misstep.errors import FormatError
from misstep.store.foreign.eventfile import crc32c, masked, records
from misstep.store.foreign.mindspore.summary import read_summary
from misstep.store.reading.reader import open_run
from misstep.store.runs import list_runs

SCRIPT = """
import sys
import mindspore as ms, numpy as np
from mindspore import nn, dataset
from mindspore.train import SummaryCollector, SummaryRecord, Model
ms.set_context(mode=ms.GRAPH_MODE)
out = sys.argv[1]

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Dense(4, 2)

    def construct(self, x):
        return self.fc(self.conv(x).mean((2, 3)))

rng = np.random.default_rng(0)
rows = [(rng.standard_normal((3, 8, 8)).astype(np.float32), np.int32(i % 2)) for i in range(16)]
data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False, num_parallel_workers=1).batch(4)
net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
collector = SummaryCollector(out + "/collected", collect_freq=1, num_process=1, custom_lineage_data={"version": "v7"})
model.train(2, data, callbacks=[collector], dataset_sink_mode=False)
with SummaryRecord(out + "/by_hand") as record:
    for step in (1, 2, 3):
        record.add_value("scalar", "loss", ms.Tensor(0.5 * step))
        record.add_value("tensor", "weights", ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) + step))
        record.add_value("image", "picture", ms.Tensor(rng.standard_normal((2, 3, 8, 8)).astype(np.float32)))
        record.add_value("histogram", "values", ms.Tensor(np.array([1, 2, -1, np.nan, np.inf], np.float32)))
        record.record(step)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summary")
    (folder / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "train.py", str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "GLOG_v": "3", "OMP_NUM_THREADS": "1"},
        timeout=280,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.mark.mindspore
class TestWhatMindSporeWrote:
    def test_a_collector_tells_losses_weights_pictures_the_graph_and_how_it_was_trained(self, written: Path) -> None:
        summary = read_summary(written / "collected")
        assert sorted({point.step for point in summary.scalars["loss/auto"]}) == [1, 2, 3, 4, 5, 6, 7, 8]
        assert {"conv.weight/auto", "fc.weight/auto", "fc.bias/auto"} <= set(summary.histograms)
        assert summary.histograms["conv.weight/auto"][0].count == 4 * 3 * 3 * 3
        picture = summary.images["input_data/auto"][0]
        assert (picture.height, picture.data[:4]) == (8, b"\x89PNG")
        assert summary.graph is not None
        assert summary.graph.node("conv.weight") is not None
        told = {name: summary.lineage[name] for name in ("optimizer", "epoch", "batch_size", "network", "user")}
        assert told == {
            "optimizer": "Momentum",
            "epoch": 2,
            "batch_size": 4,
            "network": "Net",
            "user": {"version": "v7"},
        }
        assert summary.lineage["learning_rate"] == pytest.approx(0.1)
        assert (summary.dataset_graph["op_type"], summary.dataset_graph["batch_size"]) == ("Batch", 4)
        assert summary.dataset_graph["children"][0]["op_type"] == "GeneratorDataset"
        assert summary.damage == []

    def test_values_recorded_by_hand_come_back(self, written: Path) -> None:
        summary = read_summary(written / "by_hand")
        assert [(point.step, point.value) for point in summary.scalars["loss"]] == [(1, 0.5), (2, 1.0), (3, 1.5)]
        step, values = summary.tensors["weights"][1]
        np.testing.assert_array_equal(values, np.arange(6, dtype=np.float32).reshape(2, 3) + 2)
        assert step == 2
        found = summary.histograms["values"][0]
        assert (found.count, found.nan, found.pos_inf, found.min, found.max, found.sum) == (5, 1, 1, -1.0, 2.0, 2.0)
        assert sum(count for _, _, count in found.buckets) == 3

    def test_a_folder_opens_as_a_run(self, written: Path) -> None:
        run = open_run(written / "collected")
        assert (run.state, [step.number for step in run.steps()]) == ("finished", [1, 2, 3, 4, 5, 6, 7, 8])
        history = run.history("conv.weight:param")
        assert history["step"].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
        assert set(history["count"].tolist()) == {108}
        assert run.info.settings["lineage"]["optimizer"] == "Momentum"
        assert run.graph().node("conv.weight") is not None
        by_hand = open_run(str(written / "by_hand"))
        assert [step.loss for step in by_hand.steps()] == [0.5, 1.0, 1.5]
        np.testing.assert_array_equal(by_hand.tensor("weights:output@3")[0], [3, 4, 5])

    def test_show_tells_it_like_any_run(self, written: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "misstep", "show", str(written / "collected")],
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, done.stderr
        assert "8 steps" in done.stdout

    def test_the_first_bad_value_that_was_recorded_is_its_verdict(
        self, written: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert open_run(written / "collected").verdict is None
        verdict = open_run(written / "by_hand").verdict
        assert verdict is not None
        assert verdict.sentence() == "step 1, optimizer, values: param has 1 NaN and 1 Inf"
        assert main(["show", str(written / "by_hand")]) == 0
        told = capsys.readouterr().out
        assert "values:param@1" in told
        assert "loss: 0.5 at step 1 → 1.5 at step 3" in told
        assert main(["show", str(written / "by_hand"), "values"]) == 0
        assert "unknown" not in capsys.readouterr().out

    def test_folders_of_summaries_are_listed_as_runs_and_found_by_name(
        self, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        broken = tmp_path / "broken"
        broken.mkdir()
        (broken / "events.out.events.summary.1.0.host_MS").write_bytes(b"nothing of the kind")
        shutil.copytree(written / "by_hand", tmp_path / "grown")
        assert main(["ls", "--dir", str(tmp_path), "--json"]) == 0
        listed = {one["name"]: one["steps"] for one in json.loads(capsys.readouterr().out)}
        assert listed["grown"] == 3
        assert folder_of_run(tmp_path / "grown") == tmp_path / "grown"  # misstep ui grown
        assert [run.name for run in list_runs(tmp_path / "grown")] == ["grown"]
        assert folder_of_run(tmp_path) is None
        assert open_run("grown", tmp_path).steps()[-1].loss == 1.5
        (file,) = (written / "collected").glob("*_MS")
        time, _, rest = file.name.removeprefix("events.out.events.summary.").partition(".")
        later = f"events.out.events.summary.{int(time) + 1000}.{rest}"  # a second training in one folder: the newest
        shutil.copy(file, tmp_path / "grown" / later)
        assert open_run("grown", tmp_path).history("conv.weight:param")["step"].tolist()[-1] == 8

    def test_open_tells_it_too_with_the_commands_for_more(
        self, written: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(written)
        assert main(["open", "by_hand"]) == 0
        told = capsys.readouterr().out
        assert "3 steps" in told
        assert "$ misstep show by_hand " in told
        assert "$ misstep ui by_hand" in told

    def test_a_file_being_written_is_read_up_to_its_last_whole_record(self, written: Path, tmp_path: Path) -> None:
        (whole,) = (written / "by_hand").glob("*_MS")
        data = whole.read_bytes()
        (tmp_path / whole.name).write_bytes(data[:-7])
        cut = read_summary(tmp_path)
        assert [point.step for point in cut.scalars["loss"]] == [1, 2]
        assert cut.damage == []

    def test_a_damaged_record_is_told_and_what_came_before_is_kept(self, written: Path, tmp_path: Path) -> None:
        (whole,) = (written / "by_hand").glob("*_MS")
        data = bytearray(whole.read_bytes())
        data[-20] ^= 1
        (tmp_path / whole.name).write_bytes(data)
        broken = read_summary(tmp_path)
        assert [point.step for point in broken.scalars["loss"]] == [1, 2]
        assert len(broken.damage) == 1
        assert "damaged" in broken.damage[0]


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert masked(b"") == 0xA282EAD8


def test_an_empty_event_file_has_no_records(tmp_path: Path) -> None:
    empty = tmp_path / "x.events.summary.1.0.host_MS"
    empty.write_bytes(b"")
    assert list(records(empty)) == []


def test_a_folder_without_event_files_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="summary_dir"):
        read_summary(tmp_path)
