"""What `misstep ls`, `show` and `env` say, to a person and to a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import Misstep

import misstep as package
from misstep.cli import COMMANDS, environment


def test_ls_tells_every_run_with_its_first_bad_value(misstep: Misstep, healthy: Path, broken: Path) -> None:
    said = misstep("ls", "--json")
    assert said.exit == 0
    told = {run["name"]: (run["state"], run["steps"], bool(run["verdict"])) for run in said.json}
    assert told == {"healthy": ("finished", 3, False), "broken": ("finished", 3, True)}
    assert "blocks.3/log" in misstep("ls").out


def test_ls_of_an_empty_folder_says_how_to_begin(misstep: Misstep) -> None:
    said = misstep("ls")
    assert (said.exit, said.out) == (0, "no runs in missteps; record one with:  misstep run python train.py\n")


def test_show_json_has_the_verdict_in_full(misstep: Misstep, broken: Path) -> None:
    told = misstep("show", "broken", "--json").json
    verdict = told["verdict"]
    assert {key: verdict[key] for key in ("step", "rank", "phase", "kind", "node", "op", "source", "precision")} == {
        "step": 2,
        "rank": 0,
        "phase": "forward",
        "kind": "nan",
        "node": "blocks.3/log",
        "op": "aten.log",
        "source": {"file": "train.py", "line": 87, "code": "y = torch.log(y)"},
        "precision": "operator",
    }
    assert verdict["inputs"][0]["nan"] == 0
    assert verdict["outputs"][0]["nan"] == 3
    assert [hit["address"] for hit in told["hits"]] == ["blocks.3:output@2#0", "blocks.3:output@3#0"]
    assert [(step["number"], step["loss"]) for step in told["steps"]] == [(1, 1.0), (2, "NaN"), (3, "NaN")]
    assert (told["state"], told["findings"]) == ("finished", [])


def test_a_healthy_run_has_no_verdict(misstep: Misstep, healthy: Path) -> None:
    told = misstep("show", "--json").json
    assert (told["run"], told["verdict"], told["hits"]) == ("healthy", None, [])


def test_show_tells_the_story_with_its_line_of_code(misstep: Misstep, broken: Path) -> None:
    said = misstep("show", "last")
    assert said.exit == 0
    assert (
        "step 2, forward, blocks.3/log (aten.log): output has 3 NaN of 8, inputs were finite;"
        " train.py:87 `y = torch.log(y)`"
    ) in said.out
    assert "hits: 2 errors" in said.out


def test_show_speaks_chinese_when_asked(misstep: Misstep, broken: Path) -> None:
    assert (
        "轮次 2，前向，blocks.3/log (aten.log)：output 的 8 个元素中有 3 个 NaN，输入均为有限值"
        in misstep("show", "--lang", "zh").out
    )


@pytest.mark.parametrize(("run", "code"), [("healthy", 0), ("broken", 3)])
def test_check_tells_a_script_whether_all_is_well(
    misstep: Misstep, healthy: Path, broken: Path, run: str, code: int
) -> None:
    assert misstep("show", run, "--check").exit == code
    assert misstep("show", run).exit == 0


def test_an_address_gives_the_history_of_its_tensors(misstep: Misstep, broken: Path) -> None:
    told = misstep("show", "broken", "blocks.*:output@2:3", "--json").json
    (tensor,) = told["tensors"]
    assert tensor["address"] == "blocks.3:output#0"
    assert [(row["step"], row["nan"], row["mean"]) for row in tensor["history"]] == [(2, 3, 0.5), (3, 3, 0.5)]


def test_values_that_were_kept_are_shown_with_the_places_of_the_bad_ones(misstep: Misstep, broken: Path) -> None:
    told = misstep("show", broken.name, "blocks.3:output@2").out
    assert "3 of 8 are not finite: [1], [3], [4]" in told
    (kept,) = misstep("show", broken.name, "blocks.3:output@2", "--json").json["values"]
    assert kept == {
        "address": "blocks.3:output@2#0",
        "dtype": "float32",
        "shape": [8],
        "nonfinite": [[1], [3], [4]],
        "values": [1.0, "NaN", 2.0, "NaN", "NaN", 4.0, -3.0, 0.5],
    }


def test_an_address_alone_is_looked_for_in_the_last_run(misstep: Misstep, broken: Path) -> None:
    said = misstep("show", "blocks.3:output")
    assert said.exit == 0
    assert "float32 [8]" in said.out


def test_an_unknown_node_is_answered_with_the_nearest(misstep: Misstep, broken: Path) -> None:
    said = misstep("show", "last", "block.3:output")
    assert (said.exit, said.out) == (1, "")
    assert said.err == "misstep: no node 'block.3' in broken; did you mean blocks.3?\n"


def test_an_unknown_run_is_answered_with_the_nearest(misstep: Misstep, broken: Path) -> None:
    said = misstep("show", "brokn")
    assert said.exit == 1
    assert "did you mean broken?" in said.err


def test_env_tells_versions_and_tries_the_frameworks(misstep: Misstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISSTEP_LEVEL", "guard")
    told = misstep("env", "--json").json
    assert told["misstep"] == package.__version__
    assert told["frameworks"]["torch"]["works"] is True
    assert told["changed_settings"] == {"level": "guard"}


def test_env_names_the_remedy_when_numpy_is_too_new_for_mindspore(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"mindspore": "2.10.0", "numpy": "2.1.0", "torch": None}
    monkeypatch.setattr(environment, "installed", versions.get)
    state = environment.try_frameworks()["mindspore"]
    assert (state.works, state.problem) == (
        False,
        "MindSpore 2.10 cannot work with numpy 2.1.0:  pip install 'numpy<2'",
    )


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_of_every_command_begins_with_an_example(misstep: Misstep, name: str) -> None:
    english, chinese = misstep(name, "--help"), misstep(name, "--help", "--lang", "zh")
    assert english.out.startswith(f"  $ misstep {name}")
    assert chinese.out.startswith(f"  $ misstep {name}")
    assert "用法" in chinese.out
    assert "Usage" in english.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rnu"], "there is no command 'rnu'; did you mean run?"),
        (["run"], "which command? Like:  misstep run python train.py"),
        (["run", "--steps", "some", "true"], "--steps 'some': write 100:200, 100:, :50 or 5,10,15"),
        (["run", "--level", "ops", "true"], "'ops' is not one of"),
    ],
)
def test_wrong_usage_is_told_with_exit_code_2(misstep: Misstep, arguments: list[str], sentence: str) -> None:
    said = misstep(*arguments)
    assert (said.exit, said.out) == (2, "")
    assert sentence in said.err


def test_a_misspelt_condition_is_told_before_anything_runs(misstep: Misstep) -> None:
    said = misstep("run", "--watch", "overflw_tensor", "echo", "ran")
    assert (said.exit, said.out) == (1, "")
    assert said.err.startswith("misstep: ")
