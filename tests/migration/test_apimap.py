"""The map of calls: signatures, arrangements, the table, and a generation that survives what it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from misstep.errors import MigrationError
from misstep.migration.apimap.assemble import condensed, write_table
from misstep.migration.apimap.generate import read_journal
from misstep.migration.apimap.rewrite import Rewrite, arrange, derive
from misstep.migration.apimap.signatures import Parameter, Signature, Starred, of_doc
from misstep.migration.apimap.table import load


def test_at_least_seven_hundred_names_were_executed_on_both_sides() -> None:
    entries = load().entries.values()
    assert sum(one.verified for one in entries) >= 700
    assert all(one.ways[0].passed for one in entries if one.verdict == "equivalent")
    assert all(one.ways[0].rewrite.verbatim for one in entries if one.verdict == "equivalent")


@pytest.mark.mindspore
def test_a_sample_of_the_map_holds_when_executed_again() -> None:
    """In a process of its own: MindSpore may bring it down."""
    file = Path(__file__).with_name("alone_apimap.py")
    command = [sys.executable, "-m", "pytest", str(file), "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_docstring_tells_its_overloads() -> None:
    text = """
    max(input) -> Tensor
    .. function:: max(input, dim, keepdim=False) -> tuple(Tensor)
    """
    assert [one.names for one in of_doc(text, "max")] == [("input",), ("input", "dim", "keepdim")]


def test_whole_numbers_in_the_place_of_a_list_become_one() -> None:
    view = Signature((Parameter("size", kind="int[]"),))
    fits = lambda value, kind: isinstance(value, int) or kind == "int[]"  # noqa: E731
    assert view.bind((2, -1), {}, fits) == {"size": Starred([2, -1])}
    assert view.bind((), {}, fits) is None


def test_another_default_is_spelled_out_and_another_name_is_used() -> None:
    ours = Signature((Parameter("input"), Parameter("dim", -1), Parameter("eps", 1e-5)))
    theirs = Signature((Parameter("x"), Parameter("axis", -1), Parameter("epsilon", 1e-7)))
    (found,) = derive(ours, [theirs], {"input": 1, "dim": 0}, "mindspore.ops.norm")
    assert found.names == {"input": "x", "dim": "axis", "eps": "epsilon"}
    assert found.add == {"epsilon": 1e-5}
    assert found.order == ["input", "dim", "eps"]


def test_arguments_out_of_place_are_passed_by_name() -> None:
    rewrite = Rewrite("mindspore.ops.sum", names={"keepdim": "keepdims"}, order=["input"])
    assert arrange({"input": "x", "dim": "1", "keepdim": "True"}, rewrite) == (["x"], {"dim": "1", "keepdims": "True"})


def test_a_parameter_without_a_counterpart_may_only_carry_its_default() -> None:
    ours = Signature((Parameter("input"), Parameter("alpha", 1)))
    theirs = [Signature((Parameter("input"),))]
    assert derive(ours, theirs, {"input": 1, "alpha": 2}, "mindspore.ops.add") == []
    assert derive(ours, theirs, {"input": 1, "alpha": 1}, "mindspore.ops.add")[0].absent == ["alpha"]


def test_a_candidate_that_was_executed_and_failed_is_no_counterpart() -> None:
    assert condensed({"name": "torch.a", "samples": 3, "signatures": [], "ways": []})["verdict"] == "none"
    unseen = {
        "name": "torch.a",
        "samples": 0,
        "signatures": [],
        "ways": [{"target": "mindspore.a", "unverified": True}],
    }
    assert condensed(unseen)["verdict"] == "uncertain"


def test_a_torn_journal_keeps_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"name": "torch.abs", "ways": []}\n{"name": "torch.a', encoding="utf-8")
    assert list(read_journal(path)) == ["torch.abs"]


def test_an_unreadable_table_names_the_command_that_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "map.jsonl"
    path.write_text("", encoding="utf-8")
    with pytest.raises(MigrationError, match="make api-map"):
        load(path)
    way = {"passed": 1, "rewrite": {"target": "mindspore.mint.abs"}, "forms": {"input": [1, 0]}}
    write_table([{"name": "torch.abs", "samples": 1, "signatures": [], "ways": [way]}], path)
    load.cache_clear()
    assert load(path).entries["torch.abs"].verdict == "equivalent"
    load.cache_clear()
