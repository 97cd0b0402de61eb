"""kill -9 and a loss of power: every command reads what is left, and everything before the cut is there.

The files of one killed training are cut at random bytes, alone and together, half of the time with zeros up to their
old end, as some file systems leave them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from story import SECONDS, environment_of_a_user

from misstep.cli import main
from misstep.hub import start_hub
from misstep.store.reading.reader import Run, open_run

pytestmark = pytest.mark.story

CUTS = 210

KILLED = """
import os, signal
import torch
import misstep

torch.manual_seed(0)

class Breaking(torch.nn.Module):
    def forward(self, x):
        if step == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.log(x) if step == 4 else x

model = torch.nn.Sequential(torch.nn.Linear(4, 8), Breaking(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
misstep.attach(model, optimizer, level="module", dump="*:output@1:3", record_mb=1, record_steps=8)
for step in range(1, 12):
    print("step", step)
    loss = model(torch.randn(16, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    for weight in model.parameters():
        weight.grad.nan_to_num_()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training that was killed in its ninth step left behind."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "train.py").write_text(KILLED)
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment_of_a_user(), timeout=SECONDS)
    assert done.returncode == -signal.SIGKILL
    (run,) = (folder / "missteps").iterdir()
    return run


def cut(run: Path, chance: random.Random, *, together: bool) -> dict[str, int]:
    """Cut one file of a run, or all; how many bytes are left of each."""
    files = sorted(path for path in run.rglob("*") if path.stat().st_size)
    left = {path.name: path.stat().st_size for path in files if path.is_file()}
    for path in files if together else [chance.choice(files)]:
        if path.is_file():
            size, at = path.stat().st_size, chance.randrange(path.stat().st_size)
            os.truncate(path, at)
            if together and chance.random() < 0.5:
                os.truncate(path, size)
            left[path.name] = at
    return left


def check_what_is_left(run: Run, whole: Run, left: dict[str, int]) -> None:
    """Everything that lay before the cuts, and nothing that was not recorded."""
    journal = (whole.path / "rank-0/journal.jsonl").read_bytes()[: left["journal.jsonl"]].split(b"\n")[:-1]
    assert len(run.steps()) == sum(line.startswith((b"[", b'{"kind":"step"')) for line in journal)
    assert len(run.hits()) == sum(line.startswith(b'{"kind":"hit"') for line in journal)
    # A row whose lost bytes were zeros is whole again where the hole behind the cut reads as zeros.
    before, now = ((one.path / "rank-0/stats.bin").read_bytes() for one in (whole, run))
    intact = sum(now[at : at + 128] == before[at : at + 128] for at in range(128, len(now) - 127, 128))
    assert sum(len(run.rows(step)) for step in range(10)) == (intact if left["stats.bin"] >= 128 else 0)
    for name, values in (("0:output@1", whole.tensor("0:output@1")), ("0:output@3", whole.tensor("0:output@3"))):
        (stored,) = whole.tensors(name)
        known = bool(run.tensors(name))
        assert known or left["tensors.idx"] < (whole.path / "rank-0/tensors.idx").stat().st_size
        if known and stored.offset + stored.bytes <= left["tensors.pack"]:
            assert (run.tensor(name) == values).all()


def test_two_hundred_cuts_leave_a_run_that_every_command_reads(
    killed: Path, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MISSTEP_DIR", str(folder / "cuts"))
    chance, whole = random.Random(20261116), open_run(killed)
    commands = (
        ["show", "RUN"],
        ["show", "RUN", "*:output"],
        ["open", "RUN"],
        ["open", "RUN", "--json"],
        ["export", "RUN", "--to", str(folder / "arrays")],
        ["diff", "RUN", str(killed)],
        ["check", "RUN"],
    )
    for number in range(CUTS):
        run = folder / "cuts" / f"try-{number}"
        shutil.copytree(killed, run)
        left = cut(run, chance, together=number % 3 > 0)
        check_what_is_left(open_run(run), whole, left)
        command = [str(run) if word == "RUN" else word for word in commands[number % len(commands)]]
        code = main(command)  # a traceback would be an exception here
        said = capfd.readouterr()
        assert code in (0, 3) or said.err.startswith("misstep: "), (command, said)
        if command[0] == "show" and len(command) == 2:
            assert f"misstep open {run.name}" in said.out
    assert main(["ls"]) == 0
    assert capfd.readouterr().out.count("try-") == CUTS + 1  # a line each, and how to open one that was lost
    check_the_pages(folder / "cuts")


def check_the_pages(runs: Path) -> None:
    """The hub shows the same runs, and makes the records nobody has made."""
    with start_hub(runs) as hub:

        def ask(path: str, method: str = "GET") -> dict[str, object]:
            request = urllib.request.Request(f"{hub.url}/api/v1{path}", method=method)
            request.add_header("X-Misstep-Token", hub.token)
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return json.load(answer)

        for number in range(0, CUTS, 30):
            place = f"/runs/try-{number}"
            for page in ("", "/graph", "/scalars", "/steps/4", "/hits"):
                ask(place + page)
            ask(f"{place}/records", "POST")
            ask(f"{place}/records/crash")


def test_a_record_that_was_cut_off_is_made_again(killed: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(killed, folder / "try")
    assert main(["open", str(run), "--json"]) == 0
    first = json.loads(capfd.readouterr().out)
    record = run / "records/crash.zip"
    os.truncate(record, record.stat().st_size // 2)
    assert main(["open", str(run), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["culprit"] == first["culprit"]
