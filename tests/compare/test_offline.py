"""Debugging without the training: our own runs, dumps in MindSpore's layout, and plain arrays."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from tests.capture.fakes import trained

import misstep
from misstep.cli import main
from misstep.compare.offline import Offline, SeenNode, offline
from misstep.compare.steps import SourceShelf
from misstep.errors import CompareError, TensorUnavailable
from misstep.store.foreign.export import export
from misstep.store.foreign.sniff import source_of
from misstep.store.foreign.source import ArraySource


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four steps at operator level, bad from the third on; whole tensors of steps 2 and 3."""
    folder = tmp_path_factory.mktemp("runs")
    return trained(folder, steps=4, fails_at=3, level="op", dump="*@2:3").path


@pytest.fixture
def dumped(recorded: Path, tmp_path: Path) -> Path:
    return export(source_of(recorded), tmp_path / "dump", format="mindspore")


def test_the_same_watchpoint_hits_offline_where_it_would_have_hit_live(recorded: Path, tmp_path: Path) -> None:
    live = trained(tmp_path, steps=4, fails_at=3, level="op", watch="overflow on */log:output")
    asked = offline(recorded).check("overflow on */log:output")
    assert [(hit.address, hit.reason, hit.birth) for hit in asked] == [
        (hit.address, hit.reason, hit.birth) for hit in live.hits()
    ]


def test_a_dump_of_another_tool_is_asked_the_same_questions(dumped: Path) -> None:
    hits = offline(dumped).check("overflow on *log*")
    assert {(hit.address.node, hit.address.step) for hit in hits} >= {("body/log", 3)}
    assert all(hit.address.step == 3 for hit in hits)


def test_a_change_is_asked_of_two_steps_in_a_row(tmp_path: Path) -> None:
    still = trained(tmp_path, steps=3, dump="*:param", learning_rate=0.0).path
    hits = offline(still).check("weight_not_changed on fc1.weight:param")
    assert [(hit.address.step, hit.errors) for hit in hits] == [(1, ()), (2, ()), (3, ())]


def test_questions_without_values_are_left_out_unless_asked_for(recorded: Path) -> None:
    dump = offline(recorded)
    assert dump.check("weight_change_too_large on fc1.weight:param", steps=[1]) == []
    told = dump.check("weight_change_too_large on fc1.weight:param", steps=[1], unanswered=True)
    assert [hit.errors for hit in told] == [("no_previous",)]


def test_nodes_are_found_by_glob_by_regex_and_by_line(recorded: Path) -> None:
    dump = offline(recorded)
    assert {node.name for node in dump.nodes("fc?")} == {"fc1", "fc2"}
    assert {node.name for node in dump.nodes(r"^body/(exp|log)$", regex=True)} == {"body/exp", "body/log"}
    (one,) = dump.nodes("BODY/LOG", any_case=True)
    line = one.source.rpartition("/")[2]
    assert SeenNode("body/log", "log", one.source, 0) in dump.nodes(line, by="line")


def test_tensors_are_found_by_pattern_steps_and_slots(recorded: Path) -> None:
    dump = offline(recorded)
    found = dump.tensors("fc1:output", steps=[2, 4])
    assert [(entry.step, entry.role) for entry in found] == [(2, "output"), (4, "output")]
    assert dump.tensors("fc1:output", slots=[3]) == []
    assert [str(entry) for entry in dump.tensors("log:output", regex=True, steps=[3])] == ["body/log:output"]


def test_values_statistics_ranks_and_iterations(recorded: Path, dumped: Path) -> None:
    dump = offline(recorded)
    assert (dump.ranks, dump.iterations()) == ((0,), (0, 1, 2, 3, 4))
    assert np.isnan(dump.value("body/log:output@3")).all()
    ((address, stats),) = dump.stats("body/log:output", steps=[3])
    assert (str(address), stats.nan) == ("body/log:output@3#0", 20)
    with pytest.raises(TensorUnavailable, match="only its statistics"):
        dump.value("fc1:output@1")
    assert offline(dumped).iterations() == (2, 3)
    assert np.isnan(offline(dumped).value("body/log:output@3")).all()


def test_who_feeds_whom(recorded: Path) -> None:
    dump = offline(recorded)
    assert dump.inputs_of("body/log") == ["body/scale"]
    assert dump.outputs_of("body/exp") == ["body/scale"]
    assert dump.affected_by("body/exp:output") == ["body/scale"]
    with pytest.raises(CompareError, match="no graph beside its tensors"):
        offline({"fc:output": np.zeros(3)}).inputs_of("fc")


def test_the_table_of_overflow_names_the_worst_first(recorded: Path, tmp_path: Path) -> None:
    dump = offline(recorded)
    table = dump.overflow_table()
    line = next(line for line in table if line.tensor_name == "body/log:output")
    assert (line.op_type, line.nan_number, line.total_number) == ("log", 20, 20)
    assert (line.none_overflow_number, line.total_iterations) == (0, 1)
    assert table[0].none_overflow_number < table[0].total_iterations
    path = dump.write_overflow_table(tmp_path / "table.csv")
    with open(path, newline="", encoding="utf-8") as file:
        assert next(csv.DictReader(file))["op_name"] == table[0].op_name


def test_values_beyond_float16_are_counted() -> None:
    values = np.array([1.0, 7e4, -7e4, 3.0])
    (line,) = offline({"fc:output": values}).overflow_table()
    assert (line.out_of_range_number, line.inf_number, line.none_overflow_number) == (2, 0, 0)


def test_memory_stays_within_its_limit_and_what_was_read_lately_is_not_read_again() -> None:
    arrays = {f"fc{number}:output": np.full(1 << 17, number, np.float64) for number in range(6)}
    dump = Offline(SourceShelf(ArraySource(arrays)), memory_mb=2)
    for number in (0, 1, 1, 2, 3, 4, 5, 5):
        assert dump.value(f"fc{number}:output")[0] == number
        assert dump._lately.bytes <= 2 * 2**20
    assert dump._lately.reads == 6


def test_the_first_step_of_a_tool_that_counts_from_zero_is_no_initial_weight(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0" / "Net" / "0" / "0"
    folder.mkdir(parents=True)
    (tmp_path / "rank_0" / "execution_order").mkdir()
    np.save(folder / "MatMul.Default_fc.0.0.1.output.0.DefaultFormat.float32.npy", np.full(4, np.inf, np.float32))
    (hit,) = misstep.offline(tmp_path / "rank_0").check("overflow")
    assert (hit.address.node, hit.address.step) == ("Default_fc", 0)


def test_check_exits_with_three_on_a_hit_and_says_where(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(recorded), "--watch", "overflow on */log:output"]) == 3
    assert "body/log:output@3#0" in capsys.readouterr().out
    assert main(["check", str(recorded), "--watch", "overflow on */log:output", "--steps", "1:2"]) == 0
    assert "no hit" in capsys.readouterr().out


def test_check_tells_programs_everything(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(recorded), "--watch", "overflow on */log:output", "--overflows", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert [hit["address"] for hit in told["hits"]] == ["body/log:output@3#0"]
    assert {line["tensor_name"] for line in told["overflows"] if line["nan_number"]} >= {"body/log:output"}
