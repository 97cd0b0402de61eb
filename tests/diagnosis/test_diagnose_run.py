"""`misstep diagnose`: what it says of a run, in the terminal, as JSON, as a file and in Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import misstep
from misstep.cli import main
from misstep.diagnosis.page import page
from misstep.errors import Unhealthy
from misstep.hub.answers.diagnosis_routes import diagnosis_view
from misstep.sentences.language import Language
from misstep.store.reading.reader import Run

HEAD_REPLACED = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
model[2] = nn.Linear(16, 3)
X = torch.randn(64, 8)
y = (X[:, 0] > 0).long()
for step in range(24):
    loss = nn.functional.cross_entropy(model(X), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script whose head was replaced after its optimizer was made, run as a user would."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "train.py").write_text(HEAD_REPLACED)
    command = [sys.executable, "-m", "misstep", "run", "--name", "flat", sys.executable, "train.py"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    (folder / "said.txt").write_text(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.mark.story
def test_run_ends_with_the_cause_and_its_line(broken: Path) -> None:
    said = (broken / "said.txt").read_text()
    assert "2 of 4 weights never change: they are not in the optimizer" in said
    assert "create the optimizer after train.py:7" in said
    assert "misstep diagnose last" in said


@pytest.mark.story
def test_the_diagnosis_names_line_evidence_and_change(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(broken / "missteps" / "flat")]) == 3
    said = capsys.readouterr().out
    assert said.startswith("1. 2 of 4 weights never change")
    assert "[wiring.not-in-optimizer]" in said
    assert "2.weight, 2.bias" in said
    assert "not checked" in said


@pytest.mark.story
def test_json_has_the_findings_and_what_was_not_checked(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(broken / "missteps" / "flat"), "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    first = told["findings"][0]
    assert first["rule"] == "wiring.not-in-optimizer"
    assert first["severity"] == "error"
    assert first["confidence"] > 0.9
    assert first["source"].startswith("train.py:7")
    assert told["healthy"] is False
    assert "generalisation" in told["unchecked"]


@pytest.mark.story
def test_the_report_is_one_file_without_anything_from_elsewhere(broken: Path) -> None:
    path = broken / "why.html"
    main(["diagnose", str(broken / "missteps" / "flat"), "--html", str(path)])
    text = path.read_text(encoding="utf-8")
    assert "never change" in text
    assert "<svg" in text
    assert "<script" not in text
    assert "http" not in text


@pytest.mark.story
def test_assert_healthy_fails_a_test_with_the_finding(broken: Path) -> None:
    with pytest.raises(Unhealthy, match=r"wiring\.not-in-optimizer") as raised:
        misstep.assert_healthy(broken / "missteps" / "flat")
    assert isinstance(raised.value, AssertionError)
    assert len(raised.value.findings) == 1


@pytest.mark.story
def test_a_report_that_cannot_be_written_says_so(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(broken / "missteps" / "flat"), "--html", str(broken / "no" / "why.html")]) == 1
    assert "--html" in capsys.readouterr().err


@pytest.mark.story
def test_the_page_gets_the_same_verdict_in_its_language(broken: Path) -> None:
    view = diagnosis_view(Run(broken / "missteps" / "flat"), "zh")
    assert view.findings[0].rule == "wiring.not-in-optimizer"
    assert view.findings[0].title == "4 个权重中有 2 个从不变化：它们不在优化器中"
    assert view.layers == ("0.weight", "2.weight")
    assert view.updates[1] == 0.0
    assert [one.findings for one in view.families][:2] == [1, 0]


def test_the_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--rules"]) == 0
    assert "wiring.no-zero-grad" in capsys.readouterr().out


@pytest.mark.parametrize(("language", "name"), [("en", "diagnose.md"), ("zh", "diagnose.zh.md")])
def test_the_page_lists_the_rules_there_are(language: Language, name: str) -> None:
    root = Path(__file__).parents[2]
    assert (root / "docs" / name).read_text(encoding="utf-8") == page(language), "run make docs"
