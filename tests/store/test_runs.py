"""The folder of runs: names, finding one, and the cheap look at all of them."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from small_run import INFO, begin, child_environment, record, rows, train

from misstep.core.address import Address
from misstep.core.finding import Verdict
from misstep.core.run import Step
from misstep.core.watching.watch import Hit
from misstep.errors import RunNotFound
from misstep.store.layout import RUN_VARIABLE
from misstep.store.reading.reader import open_run
from misstep.store.runs import list_runs, new_run_directory, read_run_file, resolve, write_run_file
from misstep.store.writing.writer import RunWriter


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (RUN_VARIABLE, "WORLD_SIZE", "RANK_SIZE", "MS_WORKER_NUM"):
        monkeypatch.delenv(name, raising=False)


def begin_at(directory: Path, started: float) -> RunWriter:
    return RunWriter(directory, 0, replace(INFO, name=directory.name, started=started))


def test_a_new_run_is_named_by_the_time_and_a_word(tmp_path: Path) -> None:
    made = {new_run_directory(tmp_path / "missteps") for _ in range(20)}
    assert len(made) == 20
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[a-z]+", directory.name) for directory in made)
    assert all(directory.is_dir() for directory in made)


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    assert [new_run_directory(tmp_path, "try").name for _ in range(3)] == ["try", "try-2", "try-3"]


def test_processes_of_one_launch_are_told_their_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN_VARIABLE, str(tmp_path / "deep" / "given"))
    assert new_run_directory(tmp_path / "missteps") == tmp_path / "deep" / "given"
    assert new_run_directory(tmp_path / "missteps", "other") == tmp_path / "deep" / "given"


def test_ranks_of_one_launcher_agree_on_a_run_without_being_told(tmp_path: Path) -> None:
    script = "import sys; from misstep.store.runs import new_run_directory as n; print(n(sys.argv[1]).name)"
    environment = {**child_environment(), "WORLD_SIZE": "3", "MASTER_PORT": "29500"}
    command = [sys.executable, "-c", script, str(tmp_path)]
    ranks = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    names = {rank.communicate()[0].strip() for rank in ranks}
    assert len(names) == 1
    other = subprocess.run(
        command, env={**environment, "MASTER_PORT": "29501"}, stdout=subprocess.PIPE, text=True, check=True
    )
    assert other.stdout.strip() not in names


def test_a_place_that_cannot_be_written_is_named_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert new_run_directory(tmp_path / "file" / "missteps", "try") == tmp_path / "file" / "missteps" / "try"
    monkeypatch.setenv(RUN_VARIABLE, str(tmp_path / "file" / "given"))
    assert new_run_directory(tmp_path) == tmp_path / "file" / "given"


def test_the_first_rank_to_write_run_json_has_the_word(tmp_path: Path) -> None:
    write_run_file(tmp_path, INFO)
    write_run_file(tmp_path, replace(INFO, name="late"))
    assert read_run_file(tmp_path) == (INFO, "")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_run_is_found_by_path_name_beginning_and_last(tmp_path: Path) -> None:
    for day, word in ((14, "fox"), (15, "owl"), (13, "hen")):
        begin_at(tmp_path / f"2026-11-{day}T10-00-00-{word}", started=1000.0 * day)
    owl = tmp_path / "2026-11-15T10-00-00-owl"
    for name in ("last", "2026-11-15", owl.name, "owl", str(owl), owl, owl / "rank-0"):
        assert resolve(name, tmp_path) == owl, name


def test_an_unknown_run_lists_the_nearest(tmp_path: Path) -> None:
    for name in ("resnet-a", "resnet-b", "gpt"):
        begin_at(tmp_path / name, started=1.0)
    with pytest.raises(RunNotFound, match="did you mean resnet-b or resnet-a"):
        resolve("resent-b", tmp_path)
    with pytest.raises(RunNotFound, match=r"'resnet' fits 2 runs in .*: resnet-a, resnet-b; write more of the name"):
        resolve("resnet", tmp_path)


def test_an_empty_folder_says_how_to_record(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match=r"misstep run python train\.py"):
        open_run("last", tmp_path / "missteps")


def test_the_folder_comes_from_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISSTEP_DIR", str(tmp_path / "elsewhere"))
    record(tmp_path / "elsewhere" / "try")
    assert open_run().path == open_run("try").path == tmp_path / "elsewhere" / "try"


def test_the_list_tells_of_every_run_the_newest_first(tmp_path: Path) -> None:
    record(tmp_path / "done")
    live = begin_at(tmp_path / "live", started=INFO.started + 5)
    live.step(Step(1, loss=0.5), *rows(1))
    (tmp_path / "no-run").mkdir()
    (tmp_path / ".launch-1").write_text("done")
    first, second = list_runs(tmp_path)
    assert (first.name, first.state, first.steps, first.loss, first.verdict) == ("live", "running", 1, 0.5, "")
    assert (second.name, second.state, second.steps, second.loss) == ("done", "finished", 5, 0.2)
    assert second.verdict == "step 5, forward, encoder.fc"
    assert (second.ranks, second.versions, second.command) == ((0,), {"torch": "2.13.0"}, ("python", "train.py"))
    assert list_runs(tmp_path / "nowhere") == []


def test_the_list_finds_verdict_and_last_step_in_a_long_journal(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    writer.verdict(Verdict(2, 0, "backward", "inf", "decoder.fc"))
    train(writer, 1, 400)
    for number in range(1000):
        writer.hit(Hit(1000 + number, 1, Address("encoder.fc", step=401, rank=0), reason="far too large " * 5))
    writer.flush()
    (summary,) = list_runs(tmp_path)
    assert (summary.steps, summary.verdict, summary.state) == (400, "step 2, backward, decoder.fc", "running")


def test_the_list_and_the_reader_agree(tmp_path: Path) -> None:
    for reason in ("finished", "failed", "stopped"):
        writer = begin(tmp_path / reason)
        train(writer, 1, 2)
        writer.end(reason, 0)  # type: ignore[arg-type]
    begin(tmp_path / "starting")
    paused = begin(tmp_path / "paused")
    paused.event("state", state="paused")
    for summary in list_runs(tmp_path):
        assert summary.state == open_run(summary.path).state == summary.name


def test_a_run_of_a_later_format_does_not_spoil_the_list(tmp_path: Path) -> None:
    record(tmp_path / "try")
    record(tmp_path / "future")
    (tmp_path / "future/run.json").write_text('{"format": 7}')
    assert {summary.name: summary.verdict.split(":")[0] for summary in list_runs(tmp_path)} == {
        "try": "step 5, forward, encoder.fc",
        "future": "written by a later misstep",
    }
