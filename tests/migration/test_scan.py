"""`misstep scan`: names followed through imports, aliases, chains and subclasses, and what each call becomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from misstep.cli import main
from misstep.diagnosis.lint.source import parse_source
from misstep.errors import MigrationError
from misstep.migration.apimap.table import load
from misstep.migration.scan.report import Scan, scan_paths, scan_source


def scanned(text: str, to: str = "mindspore") -> Scan:
    found = Scan(to)  # type: ignore[arg-type]
    scan_source(parse_source(text), found, load())
    return found


def becomes(text: str) -> dict[str, str]:
    return {row.name: row.becomes for row in scanned(text).rows}


def test_a_call_is_known_under_every_alias() -> None:
    text = "import torch as t, torch.nn.functional as F\nfrom torch import nn as layers\nfrom torch.nn import ReLU\n"
    names = [row.name for row in scanned(f"{text}t.cat([])\nF.relu(t.ones(1))\nlayers.Linear(1, 2)\nReLU()\n").rows]
    assert names == ["torch.cat", "torch.ones", "torch.nn.functional.relu", "torch.nn.Linear", "torch.nn.ReLU"]


def test_tensor_methods_are_known_along_a_chain() -> None:
    text = "import torch\nx = torch.ones(2, 3).unsqueeze(0).transpose(1, 2)\nn = x.size(0)\n'a b'.split()\n"
    found = scanned(text)
    names = [row.name for row in found.rows]
    assert names == ["torch.ones", "torch.Tensor.unsqueeze", "torch.Tensor.transpose", "torch.Tensor.size"]
    assert found.resolved == 1.0


def test_what_a_layer_of_self_returns_is_a_tensor() -> None:
    text = (
        "from torch import nn\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 2)\n"
        "    def forward(self, x):\n        return self.fc(x).view(-1, 2)\n"
    )
    assert "torch.Tensor.view" in {row.name for row in scanned(text).rows}


def test_another_default_is_spelled_out_in_the_rewrite() -> None:
    found = becomes(
        "from torch import nn\nnn.Conv2d(3, 8, 3)\nnn.LayerNorm(8)\nnn.BatchNorm2d(8, momentum=0.3)\nnn.GELU()\n"
    )
    assert found["torch.nn.Conv2d"] == "nn.Conv2d(3, 8, 3, has_bias=True, pad_mode='pad')"
    assert found["torch.nn.LayerNorm"] == "nn.LayerNorm((8,), epsilon=1e-05)"
    assert found["torch.nn.BatchNorm2d"] == "nn.BatchNorm2d(8, momentum=0.7)"
    assert found["torch.nn.GELU"] == "nn.GELU(approximate=False)"


def test_a_parameter_nobody_executed_is_uncertain_and_says_so() -> None:
    (row,) = scanned("from torch import nn\nnn.Conv2d(3, 8, 3, padding_mode='reflect')\n").rows
    assert row.verdict == "uncertain"
    assert "padding_mode" in row.why


def test_a_call_on_something_unknown_is_not_resolved() -> None:
    found = scanned("def f(thing):\n    return thing.sum(1)\n")
    assert [line for _, line, _ in found.unresolved] == [2]
    assert found.resolved == 0.0


def test_mindspore_reads_backward() -> None:
    rows = scanned("from mindspore import nn, mint\nmint.cat([])\nnn.Conv2d(1, 2, 3)\n", to="torch").rows
    assert [(row.name, row.becomes.partition("(")[0]) for row in rows] == [
        ("mindspore.mint.cat", "torch.cat"),
        ("mindspore.nn.Conv2d", "torch.nn.Conv2d"),
    ]


@pytest.mark.parametrize("style", ["text", "json", "csv", "sarif", "html"])
def test_every_format_names_the_call(style: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "net.py"
    source.write_text("import torch\ntorch.frobenius_norm(torch.ones(2))\n", encoding="utf-8")
    out = tmp_path / f"scan.{style}"
    assert main(["scan", str(source), "--format", style, "--out", str(out), "--all"]) == 3
    text = out.read_text(encoding="utf-8")
    assert "torch.frobenius_norm" in text
    assert list(tmp_path.glob("*.partial")) == []
    if style in ("json", "sarif"):
        json.loads(text)
    capsys.readouterr()


def test_a_folder_without_python_is_named(tmp_path: Path) -> None:
    with pytest.raises(MigrationError, match=r"no Python file"):
        scan_paths([tmp_path])


def test_the_five_real_sources_are_resolved() -> None:
    import torch
    import transformers

    models, home = Path(transformers.__file__).parent / "models", Path(torch.__file__).parent
    files = [models / f"{name}/modeling_{name}.py" for name in ("gpt2", "bert", "resnet", "t5")]
    for path in (*files, home / "nn/modules/transformer.py"):
        assert scan_paths([path]).resolved >= 0.95, path
