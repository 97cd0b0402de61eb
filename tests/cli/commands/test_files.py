"""Commands about stored tensors: diff, export and show, on files and runs that lie still."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from tests.capture.fakes import trained
from tests.capture.test_dump_config import written

import misstep
from misstep.cli import main
from misstep.store.checkpoint import write_npz


def arrays(path: Path, **changed: np.ndarray) -> str:  # type: ignore[type-arg]
    held = {"fc.weight": np.ones((2, 3), np.float32), "fc.bias": np.zeros(2, np.float32), **changed}
    write_npz(path, held)
    return str(path)


def test_diff_is_a_public_name(tmp_path: Path) -> None:
    one = arrays(tmp_path / "one.npz")
    other = arrays(tmp_path / "other.npz", **{"fc.bias": np.full(2, 0.5, np.float32)})
    assert misstep.diff(one, one)
    cause = misstep.diff(one, other).cause
    assert cause is not None
    assert cause.name == "fc.bias:param"


def test_a_map_file_is_written_to_be_edited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = arrays(tmp_path / "one.npz")
    other = tmp_path / "other.npz"
    write_npz(other, {"dense.weight": np.ones((2, 3), np.float32), "fc.bias": np.zeros(2, np.float32)})
    main(["diff", one, str(other), "--write-map", str(tmp_path / "map.toml")])
    assert '"fc.bias" = "fc.bias"' in (tmp_path / "map.toml").read_text(encoding="utf-8")
    (tmp_path / "map.toml").write_text('[names]\n"fc.weight" = "dense.weight"\n', encoding="utf-8")
    assert main(["diff", one, str(other), "--map", str(tmp_path / "map.toml")]) == 0


def test_ranks_are_chosen_on_either_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path, dump="fc1:output@1:2", steps=2).path
    assert main(["diff", f"{run}@1", f"{run}@1", "--rank", "0", "--right-rank", "0"]) == 0
    assert main(["diff", f"{run}@1", f"{run}@1", "--rank", "3"]) == 1


def test_the_word_before_the_loss_is_the_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, loss in (("one.log", 1.0), ("other.log", 2.0)):
        (tmp_path / name).write_text(f"step: 1, lm loss: {loss}, loss: 7.0\n", encoding="utf-8")
    logs = [str(tmp_path / "one.log"), str(tmp_path / "other.log")]
    assert main(["diff", *logs, "--losses", "--tag", "lm loss"]) == 3
    assert main(["diff", *logs, "--losses", "--tag", "perplexity"]) == 1
    assert "--tag" in capsys.readouterr().err


def test_a_checkpoint_is_shown_with_its_suspicious_weights_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = arrays(tmp_path / "model.npz", **{"fc.bias": np.array([1.0, np.nan], np.float32)})
    assert main(["show", path]) == 0
    told = capsys.readouterr().out
    assert "2 tensors, 8 parameters; fc.bias is nan" in told
    assert told.index("fc.bias", told.index("name")) < told.index("fc.weight")
    assert main(["show", path, "--check"]) == 3
    capsys.readouterr()
    assert main(["show", path, "*.weight", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["state"]) for one in facts["weights"]] == [("fc.weight", "constant")]


def test_an_export_goes_where_it_is_told_and_the_run_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "configured"
    config = written(tmp_path, path=str(target), net_name="Little", dump_mode=1, kernels=["fc1"])
    run = trained(tmp_path, dump_config=config).path
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["export", str(run), "--format", "mindspore"]) == 0
    assert (tmp_path / "here" / "misstep-export").is_dir()
    assert not target.exists(), "a run of somebody else's could name any place"
    assert f"--to {target}" in capsys.readouterr().err
    assert main(["export", str(run), "--format", "mindspore", "--to", str(target)]) == 0
    assert {folder.name for folder in (target / "rank_0" / "Little" / "0").iterdir()} == {"0", "2"}  # its iterations
    said = json.loads((target / "rank_0" / ".dump_metadata" / "data_dump.json").read_text())
    assert said["common_dump_settings"]["kernels"] == ["fc1"]
    assert not list(target.rglob("statistic.csv"))  # saved_data: tensor


@pytest.mark.parametrize("saved", ["statistic", "full"])
def test_the_table_of_statistics_has_the_columns_that_were_asked_for(tmp_path: Path, saved: str) -> None:
    config = written(
        tmp_path, path=str(tmp_path / "to"), saved_data=saved, statistic_category=["l2norm", "nan count", "md5"],
        dump_mode=1, kernels=["fc1"], input_output=2, e2e={"sample_mode": 1, "sample_num": 3},
    )  # fmt: skip
    whole = trained(tmp_path / "whole", dump="fc1:output@1")
    run = trained(tmp_path, dump_config=config)
    assert main(["export", str(run.path), "--format", "mindspore", "--to", str(tmp_path / "to")]) == 0
    folder = tmp_path / "to" / "rank_0" / "Net" / "0" / "0"
    with open(folder / "statistic.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    assert list(rows[0])[9:] == ["Shape", "L2Norm Value", "NaN Count", "MD5"]
    (row,) = [row for row in rows if row["Op Name"] == "fc1" and row["IO"] == "output"]
    # Of the whole tensor, though only a sample of it was kept.
    assert (row["Shape"], row["NaN Count"], row["Data Size"]) == ("(4 5)", "0", "80")
    assert float(row["L2Norm Value"]) == pytest.approx(np.linalg.norm(whole.tensor("fc1:output@1")), rel=1e-6)
    assert [len(np.load(file)) for file in folder.glob("*.fc1.*.output.*.npy")] == ([3] if saved == "full" else [])
    assert bool(row["MD5"]) == (saved == "full")
    told = [event.facts["text"] for event in run.events("warning")]
    assert any("statistic_category md5" in text for text in told) == (saved == "statistic")


def test_a_dump_of_another_tool_is_told_like_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path, dump="fc1:output", steps=3).path
    monkeypatch.chdir(tmp_path)
    dump = "dump"
    assert main(["export", str(run), "--format", "mindspore", "--to", dump]) == 0
    bad = next(Path(dump).rglob("*/2/*.npy"))
    np.save(bad, np.full_like(np.load(bad), np.nan))
    capsys.readouterr()
    assert main(["open", dump]) == 0
    told = capsys.readouterr().out
    assert "MindSpore dump · 3 tensors · steps 1 to 3" in told
    assert "fc1:output@2#0, 20 NaN of 20" in told
    for command in ("show", "check", "diff", "ui"):
        assert f"$ misstep {command} {dump}" in told
    assert main(["show", dump]) == 0
    assert capsys.readouterr().out.split("more:")[0] == told.split("more:")[0]
    assert main(["show", dump, "fc1:output@2", "--json", "--check"]) == 3
    (tensor,) = json.loads(capsys.readouterr().out)["tensors"]
    assert (tensor["address"], tensor["stats"]["nan"]) == ("fc1:output@2#0", 20)
    assert main(["show", dump, "fc2"]) == 1
    assert "no tensor 'fc2'" in capsys.readouterr().err


def test_memory_with_several_names_is_one_file_with_several_links(tmp_path: Path) -> None:
    run = trained(tmp_path, dump="block*:output@1", steps=1).path
    assert main(["export", str(run), "--format", "mindspore", "--to", str(tmp_path / "to")]) == 0
    links = {file.name.split(".")[1]: file.stat().st_nlink for file in (tmp_path / "to").rglob("*.npy")}
    assert links == {"block_0": 1, "block_1": 2, "block": 2}


def test_a_misspelt_dump_is_told_before_the_command_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--dump", "fc:outptu", "python", "-c", "print(1)"]) == 1
    assert "unknown role 'outptu'" in capsys.readouterr().err
    assert main(["run", "--dump-config", "none.json", "python", "-c", "print(1)"]) == 1
    assert "no such dump configuration" in capsys.readouterr().err
    assert main(["dump", "last", "fc:outptu"]) == 1
