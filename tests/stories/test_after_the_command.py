"""The user's program is sacred: whatever happens around it, its exit code is its own and we say one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MISSTEP = [sys.executable, "-m", "misstep"]
TRAIN = """
import sys
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).mean().backward()
    optimizer.step()
{then}
sys.exit(7)
"""


def ran(folder: Path, then: str = "", *options: str) -> subprocess.CompletedProcess[str]:
    script = folder / "train.py"
    script.write_text(TRAIN.replace("{then}", then))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MISSTEP")}
    return subprocess.run(
        [*MISSTEP, "run", *options, sys.executable, str(script)],
        cwd=folder,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.story
def test_a_removed_directory_is_told_as_that(tmp_path: Path) -> None:
    done = ran(tmp_path, "import shutil; shutil.rmtree('missteps')")
    assert done.returncode == 7
    assert "was removed while the command ran" in done.stderr
    assert "no training was seen" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.story
def test_a_name_no_file_system_takes_is_cut(tmp_path: Path) -> None:
    done = ran(tmp_path, "", "--name", "../" + "x" * 300)
    assert done.returncode == 7
    assert "Traceback" not in done.stderr
    (run,) = (tmp_path / "missteps").iterdir()
    assert run.name.startswith("xxx")
    assert (run / "rank-0" / "journal.jsonl").is_file()


@pytest.mark.story
def test_a_folder_nobody_may_write_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "missteps").write_text("a file in the way")
    done = ran(tmp_path)
    assert done.returncode == 7
    assert "Traceback" not in done.stderr
    assert "cannot record in" in done.stderr
