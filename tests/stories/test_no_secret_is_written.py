"""A training that is given secrets in every way: not one of them is in any file of its run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "Zq7w8Rt" + "w8Rtw8Rt" * 3
TRAIN = """
import logging, os, sys
import torch
os.environ["LATE_API_TOKEN"] = sys.argv[2] + "late"
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("signed in with", sys.argv[2])
print("https://me:" + sys.argv[2] + "@host/")
logging.warning("Authorization: Bearer %s", sys.argv[2])
def login(password):
    api_key = password
    raise RuntimeError("cannot sign in with token=" + password)
for step in range(3):
    optimizer.zero_grad(); model(torch.ones(3, 2)).mean().backward(); optimizer.step()
login(sys.argv[2])
"""


@pytest.mark.story
def test_no_secret_is_in_any_file_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MISSTEP")}
    environment |= {"HF_TOKEN": SECRET + "environment", "CORP_PIN": SECRET + "list", "MISSTEP_SECRETS": "corp_*"}
    done = subprocess.run(
        [sys.executable, "-m", "misstep", "run", sys.executable, "train.py", "--api-key", SECRET],
        cwd=tmp_path,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    files = [path for path in (tmp_path / "missteps").rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"run.json", "journal.jsonl", "recorder.ring", "crash.zip", "reports.jsonl"} <= names
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
    assert b"(hidden)" in next(path for path in files if path.name == "run.json").read_bytes()
