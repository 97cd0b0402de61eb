"""`misstep port`: a source written anew with its comments, and what is left of it to a human."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from misstep.cli import main
from misstep.diagnosis.lint.source import parse_source
from misstep.errors import MigrationError
from misstep.migration.apimap.table import load
from misstep.migration.port.file import Ported, port_source
from misstep.migration.port.project import port_project

NET = """\
# keep me
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(  # a comment inside a call
            3,
            8,
            3,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).flatten(1).softmax(dim=-1)  # and one behind
"""


def ported(text: str) -> Ported:
    return port_source(parse_source(text), load())


def test_comments_and_formatting_stay() -> None:
    text = ported(NET).text
    assert "# keep me" in text
    assert "nn.Conv2d(  # a comment inside a call\n            3,\n            8,\n            3, has_bias=True" in text
    assert text.count("# and one behind") == 1
    assert "class Net(nn.Cell):" in text
    assert "def construct(self, x: mindspore.Tensor) -> mindspore.Tensor:" in text
    assert "torch" not in text


def test_a_source_without_anything_to_change_stays_byte_for_byte() -> None:
    text = "import math\n\n\ndef area(r):\n    return math.pi * r**2  # é\n"
    assert ported(text).text == text


def test_calls_inside_calls_are_both_written() -> None:
    text = ported("import torch\ny = torch.cat([torch.ones(2, 2).view(-1), torch.zeros(4)], dim=0)\n").text
    assert text.endswith("y = mint.cat([mint.reshape(mint.ones((2, 2)), (-1,)), mint.zeros((4,))], dim=0)\n"), text


def test_an_uncertain_call_stays_with_its_reason_and_its_full_name() -> None:
    found = ported("from torch import nn\n\n\ndef f():\n    return nn.Conv2d(3, 8, 3, padding_mode='reflect')\n")
    assert "    # misstep: torch.nn.Conv2d: " in found.text
    assert "    return torch.nn.Conv2d(3, 8, 3, padding_mode='reflect')\n" in found.text
    assert "import torch\n" in found.text
    assert found.left_lines == 1


LOOP = """\
import torch
from torch import nn


def train(model, loader, optimizer, scheduler):
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        print(loss.item(), out.shape)
"""


def test_a_training_loop_becomes_value_and_grad() -> None:
    found = ported(LOOP)
    assert found.left == []
    assert (
        "        def forward_step():\n"
        "            out = model(x)\n"
        "            loss = criterion(out, y)\n"
        "            return loss, out\n"
    ) in found.text
    assert "(loss, out), grads = mindspore.value_and_grad(forward_step, None, optimizer.parameters" in found.text
    assert (
        "grads = ops.clip_by_global_norm(grads, 1.0)\n        optimizer(grads)\n        scheduler.step()" in found.text
    )
    compile(found.text, "loop.py", "exec")


def test_a_backward_without_its_step_is_left_to_a_human() -> None:
    found = ported("import torch\n\n\ndef f(model, x):\n    loss = model(x).sum()\n    loss.backward()\n")
    assert [one.name for one in found.left] == ["torch.Tensor.backward"]


def test_what_graph_mode_refuses_is_named_with_its_line() -> None:
    text = NET.replace(
        "        return self.conv",
        "        if x.sum() > 0:\n            print(x.shape)\n        self.last = x\n        return self.conv",
    )
    assert [(one.line, one.what) for one in ported(text).hazards] == [(16, "branch"), (17, "print"), (18, "state")]


TRAIN = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self):
        draw = np.random.default_rng(0)
        self.x = draw.standard_normal((64, 4)).astype(np.float32)
        self.y = (self.x.sum(axis=1) > 0).astype(np.int32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.7)
losses = []
for epoch in range(4):
    for x, y in DataLoader(Points(), batch_size=16):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
with torch.no_grad():
    print(sum(losses[-4:]) < sum(losses[:4]))
"""


@pytest.mark.mindspore
@pytest.mark.slow
def test_a_ported_training_script_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "train.py"
    source.write_text(TRAIN, encoding="utf-8")
    assert main(["port", str(source), "--no-check"]) == 0, capsys.readouterr().out
    command = [sys.executable, str(tmp_path / "train_mindspore.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.strip().endswith("True"), done.stderr[-2000:]


@pytest.mark.mindspore
@pytest.mark.slow
def test_sixteen_networks_are_ported_and_compute_the_same() -> None:
    """In a process of their own: MindSpore keeps state between trainings."""
    file = Path(__file__).with_name("alone_port.py")
    command = [sys.executable, "-m", "pytest", str(file), "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def test_files_of_ones_own_are_never_written_over(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text(NET, encoding="utf-8")
    target = tmp_path / "net_mindspore.py"
    target.write_text("mine = True\n", encoding="utf-8")
    with pytest.raises(MigrationError, match=r"net_mindspore.py exists"):
        port_project(str(source), try_it=False)
    assert target.read_text(encoding="utf-8") == "mine = True\n"
    target.unlink()
    port_project(str(source), try_it=False)
    port_project(str(source), try_it=False)  # its own work may be written again
    target.write_text(target.read_text(encoding="utf-8") + "x = 1\n", encoding="utf-8")
    with pytest.raises(MigrationError, match=r"was changed after"):
        port_project(str(source), try_it=False)


def test_a_folder_is_ported_with_the_files_that_need_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "net.py").write_text(NET, encoding="utf-8")
    (folder / "plain.py").write_text("x = 1\n", encoding="utf-8")
    found = port_project(str(folder), out=str(tmp_path / "out"), try_it=False)
    assert [one.target.name for one in found.files] == ["net.py"]
    assert (tmp_path / "out/plain.py").read_text(encoding="utf-8") == "x = 1\n"
    assert list(tmp_path.rglob("*.partial")) == []


def test_a_source_without_pytorch_is_refused_with_the_next_command(tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text("import mindspore\n", encoding="utf-8")
    with pytest.raises(MigrationError, match=r"misstep scan .* --to torch"):
        port_project(str(source))
