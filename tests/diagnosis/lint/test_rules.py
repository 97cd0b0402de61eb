"""Every rule finds its mistake at its line, and stays silent on the code that only looks like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pieces import HEAD, RIGHT, WRONG

from misstep.cli import main
from misstep.diagnosis.lint import RULES, LintError, lint_paths, lint_text
from misstep.diagnosis.lint.page import page
from misstep.sentences.language import Language

ROOT = Path(__file__).parents[3]


def test_every_rule_has_both_pieces() -> None:
    assert set(WRONG) == set(RIGHT) == set(RULES)
    assert len(RULES) >= 25


@pytest.mark.parametrize("rule", WRONG)
def test_a_rule_names_the_line(rule: str) -> None:
    text = HEAD + WRONG[rule]
    here = next(number for number, line in enumerate(text.splitlines(), 1) if "# here" in line)
    found = {(remark.rule, remark.line) for remark in lint_text(text)}
    assert (rule, here) in found
    assert {line for _, line in found} == {here}, f"something else was found too: {found}"


@pytest.mark.parametrize("rule", RIGHT)
def test_a_rule_is_silent_on_code_that_is_right(rule: str) -> None:
    assert [remark.rule for remark in lint_text(HEAD + RIGHT[rule])] == []


def test_the_projects_own_trainings_are_clean() -> None:
    report = lint_paths([ROOT / "examples", ROOT / "tests" / "trials", ROOT / "bench"])
    assert [(one.path, one.line, one.rule) for one in report.remarks] == []
    assert report.files > 80


def test_a_network_of_another_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "net.py").write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def forward(self, x):\n        return self.fc(x).softmax(-1)\n"
    )
    train = tmp_path / "train.py"
    train.write_text(
        "from parts.net import Net\nimport torch\n\nnet = Net()\nloss = torch.nn.functional.cross_entropy(net(x), y)\n"
    )
    (remark,) = lint_paths([train]).remarks
    assert (remark.rule, remark.line, remark.code) == (
        "softmax-twice",
        5,
        "loss = torch.nn.functional.cross_entropy(net(x), y)",
    )


def test_a_comment_switches_a_rule_off() -> None:
    wrong = "import torch.nn.functional as F\np = F.softmax(x)"
    assert [one.rule for one in lint_text(wrong)] == ["softmax-without-dim"]
    assert lint_text(f"{wrong}  # misstep: ignore[softmax-without-dim]") == []
    assert lint_text(f"{wrong}  # misstep: ignore") == []
    assert [one.rule for one in lint_text(f"{wrong}  # misstep: ignore[rate-huge]")] == ["softmax-without-dim"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.py"], "no such file: missing.py"),
        (["broken.py"], "broken.py:1: not valid Python"),
        (["fine.py", "--only", "softmax-twise"], "softmax-twice"),
        (["empty"], "no Python file in empty"),
    ],
)
def test_bad_input_is_explained(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "fine.py").write_text("x = 1\n")
    (tmp_path / "empty").mkdir()
    assert main(["lint", *arguments]) == 1
    assert said in capsys.readouterr().err


def test_a_broken_file_in_a_folder_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "train.py").write_text(HEAD + WRONG["softmax-without-dim"])
    report = lint_paths([tmp_path])
    assert [one.rule for one in report.remarks] == ["softmax-without-dim"]
    assert "broken.py:1" in report.unread[0]


def test_sarif_names_file_line_and_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.py"
    path.write_text(HEAD + WRONG["nll-without-log"])
    assert main(["lint", str(path), "--format", "sarif"]) == 3
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"]) == ("nll-without-log", "error")
    assert (place["region"]["startLine"], Path(place["artifactLocation"]["uri"]).name) == (7, "train.py")
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(RULES)


def test_the_terminal_speaks_chinese(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.py"
    path.write_text(HEAD + WRONG["zero-grad-missing"])
    assert main(["lint", str(path), "--lang", "zh"]) == 3
    assert "optimizer 的梯度从未清零" in capsys.readouterr().out


def test_files_that_import_each_other_end() -> None:
    assert lint_text("from a import B\nclass C(B): pass\n", "b.py") == []


def test_an_unknown_rule_is_an_error() -> None:
    with pytest.raises(LintError, match="misstep lint --rules"):
        lint_paths([], only=["nonsense"])


@pytest.mark.parametrize(("language", "name"), [("en", "lint.md"), ("zh", "lint.zh.md")])
def test_the_page_lists_the_rules_there_are(language: Language, name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page(language), "run make docs"
