"""However a training ends, it leaves a flight record that opens elsewhere and names the place."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from story import MISSTEP, SECONDS, Result, RunCommand, RunStory, Write, environment_of_a_user

from waiting import when

pytestmark = pytest.mark.story

SECRET = "correct-horse-battery"

BREAKING = """
import ctypes, os, resource, signal, sys
import torch

torch.manual_seed(0)
password = os.environ.get("DATABASE_PASSWORD", "")

class Breaking(torch.nn.Module):
    def forward(self, x):
        if step == 4:
            fail(x)
        return x

model = torch.nn.Sequential(torch.nn.Linear(4, 8), Breaking(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train():
    global step
    for step in range(1, 9):
        print("step", step, "signed in with", password)
        loss = model(torch.randn(16, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
"""Trains three steps; in the fourth, the module in the middle does what the story says."""


@pytest.fixture
def ends(run_story: RunStory, misstep_command: RunCommand, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a training to its bad end, take its bundle to an empty place, and open it there."""

    def tell(failing: str, *run_args: str) -> tuple[Result, dict[str, Any]]:
        monkeypatch.setenv("DATABASE_PASSWORD", SECRET)
        monkeypatch.setenv("SERVICE_API_KEY", SECRET)
        result = run_story(f"{BREAKING}\n{failing}\ntrain()\n", "--level", "guard", *run_args)
        monkeypatch.delenv("DATABASE_PASSWORD")
        monkeypatch.delenv("SERVICE_API_KEY")
        (bundle,) = result.folder.glob("missteps/*/records/crash.zip")
        moved = result.folder / "elsewhere" / "crash.zip"
        moved.parent.mkdir()
        shutil.move(bundle, moved)
        shutil.rmtree(result.folder / "missteps")
        opened = misstep_command("open", str(moved), "--json")
        assert opened.exit == 0, opened.err
        with zipfile.ZipFile(moved) as archive:
            for name in archive.namelist():
                assert SECRET.encode() not in archive.read(name), name
        told = misstep_command("open", str(moved))
        assert told.exit == 0, told.err
        crash = json.loads(opened.out)
        assert all("".join(line.split()) in "".join(told.out.split()) for line in crash["summary"])
        return result, crash

    return tell


def spot(crash: dict[str, Any]) -> tuple[int, str, str]:
    """(step, phase, module) of the place."""
    where = crash["culprit"]["spot"]
    return where["step"], where["phase"], where["type"]


def causes(crash: dict[str, Any]) -> list[str]:
    return [cause["id"] for cause in crash["causes"]]


def test_an_exception_is_told_with_its_line_and_the_tensors_around_it(ends: Callable[..., Any]) -> None:
    result, crash = ends("def fail(x):\n    wide = torch.cat([x, x], 1)\n    torch.nn.Linear(8, 2)(wide)")
    assert (result.exit, spot(crash)) == (1, (4, "forward", "Breaking"))
    assert crash["culprit"]["event"]["name"] == "RuntimeError"
    assert crash["culprit"]["spot"]["code"] == "torch.nn.Linear(8, 2)(wide)"
    assert crash["frames"][-1]["library"] or crash["frames"][-1]["locals"]
    own = [frame for frame in crash["frames"] if not frame.get("library")]
    assert own[-1]["locals"]["wide"].startswith("float32 [16, 16] · ")
    assert own[0]["locals"]["password"] == "(hidden)"
    assert causes(crash) == ["matmul-shapes"]
    assert [step["step"] for step in crash["steps"]] == [1, 2, 3]
    assert crash["batch"][0]["shape"] == [16, 4]
    assert crash["log"][-1].startswith("RuntimeError: mat1 and mat2")


def test_an_exit_with_a_code_is_told_with_the_line_that_asked_for_it(ends: Callable[..., Any]) -> None:
    result, crash = ends("def fail(x):\n    sys.exit(7)")
    assert (result.exit, spot(crash)) == (7, (4, "forward", "Breaking"))
    assert (crash["culprit"]["event"]["kind"], crash["culprit"]["event"]["code"]) == ("exit", 7)
    assert crash["culprit"]["spot"]["code"] == "sys.exit(7)"


def test_the_values_of_the_first_bad_tensor_travel_with_the_record(
    ends: Callable[..., Any], misstep_command: RunCommand
) -> None:
    failing = "def fail(x):\n    x.log_()\n\nto_the_end = train\ndef train():\n    to_the_end()\n    sys.exit(3)"
    result, crash = ends(failing)
    (verdict,) = crash["of_run"]["verdicts"]
    bad = verdict["outputs"][0]["address"]
    assert f"{bad}#0" in [one["address"] for one in crash["values"]]
    moved = str(result.folder / "elsewhere" / "crash.zip")
    assert f"$ misstep show {moved} " in misstep_command("open", moved).out.replace("\n", "")
    (shown,) = json.loads(misstep_command("show", moved, bad, "--json").out)["values"]
    assert (shown["shape"], len(shown["nonfinite"])) == ([16, 8], verdict["outputs"][0]["nan"])


def test_sigterm_ends_it_as_always_and_leaves_the_stack(ends: Callable[..., Any]) -> None:
    result, crash = ends("def fail(x):\n    os.kill(os.getpid(), signal.SIGTERM)")
    assert (result.exit, spot(crash)) == (128 + signal.SIGTERM, (4, "forward", "Breaking"))
    assert crash["culprit"]["event"]["name"] == "SIGTERM"
    assert crash["culprit"]["spot"]["code"] == "os.kill(os.getpid(), signal.SIGTERM)"


def test_sigkill_leaves_the_module_and_the_line_that_called_the_network(ends: Callable[..., Any]) -> None:
    result, crash = ends("def fail(x):\n    os.kill(os.getpid(), signal.SIGKILL)")
    assert (result.exit, spot(crash)) == (128 + signal.SIGKILL, (4, "forward", "Breaking"))
    assert crash["culprit"]["event"]["name"] == "SIGKILL"
    assert crash["culprit"]["spot"]["code"] == "loss = model(torch.randn(16, 4)).pow(2).mean()"
    assert causes(crash) == ["killed-from-outside"]
    assert [step["step"] for step in crash["steps"]] == [1, 2, 3]
    assert crash["log"] == [f"step {step} signed in with (hidden)" for step in range(2, 5)]


def test_a_segmentation_fault_is_told_with_the_python_line_that_caused_it(ends: Callable[..., Any]) -> None:
    result, crash = ends("def fail(x):\n    ctypes.string_at(0)")
    assert (result.exit, spot(crash)) == (128 + signal.SIGSEGV, (4, "forward", "Breaking"))
    assert crash["culprit"]["event"]["name"] == "SIGSEGV"
    assert crash["culprit"]["spot"]["code"] == "ctypes.string_at(0)"
    assert causes(crash) == ["segmentation-fault"]
    assert any("ctypes" in frame and "string_at" in frame for frame in crash["machine"][:4])


def test_an_abort_in_native_code_is_told(ends: Callable[..., Any]) -> None:
    result, crash = ends("def fail(x):\n    os.abort()")
    assert (result.exit, spot(crash)) == (128 + signal.SIGABRT, (4, "forward", "Breaking"))
    assert (crash["culprit"]["event"]["name"], crash["culprit"]["spot"]["code"]) == ("SIGABRT", "os.abort()")


def test_out_of_memory_names_who_holds_it(ends: Callable[..., Any]) -> None:
    result, crash = ends(
        """
def fail(x):
    used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), used + (200 << 20)))
    hoard = []
    while True:
        hoard.append(torch.ones(4 << 20))
"""
    )
    assert (result.exit, spot(crash)) == (1, (4, "forward", "Breaking"))
    assert crash["culprit"]["spot"]["code"] == "hoard.append(torch.ones(4 << 20))"
    assert causes(crash) == ["out-of-memory-host"]
    largest = crash["holders"][0]
    assert (largest["name"], largest["kind"], largest["shape"]) == ("hoard[…]", "variable", [4 << 20])
    assert largest["count"] >= 8


def test_a_training_that_ends_well_leaves_a_record_only_in_mode_2(
    run_story: RunStory, misstep_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = run_story(f"{BREAKING}\ndef fail(x): pass\ntrain()\n", "--level", "guard")
    assert list(quiet.folder.glob("missteps/*/records/*")) == []
    monkeypatch.setenv("MS_RDR_ENABLE", "1")
    monkeypatch.setenv("MS_RDR_MODE", "2")
    monkeypatch.setenv("MS_RDR_PATH", str(quiet.folder / "from-the-environment"))
    (quiet.folder / "mindspore_config.json").write_text(
        json.dumps({"rdr": {"enable": True, "mode": 2, "path": str(quiet.folder / "rdr")}})
    )
    told = run_story(f"{BREAKING}\ndef fail(x): pass\ntrain()\n", "--level", "guard", "--name", "second")
    assert told.exit == 0
    (bundle,) = (told.folder / "rdr" / "rank_0" / "rdr").iterdir()
    assert not (told.folder / "from-the-environment").exists()
    opened = json.loads(misstep_command("open", str(bundle), "--json").out)
    assert (opened["run"], opened["culprit"]["event"]["kind"]) == ("second", "end")
    assert [step["step"] for step in opened["steps"]] == list(range(1, 9))


@pytest.fixture
def start(folder: Path, write: Write) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a script under misstep in the background; whatever is left of it is ended with the story."""
    started: list[subprocess.Popen[str]] = []

    def begin(script: str, *launcher: str, **settings: str) -> subprocess.Popen[str]:
        write("train.py", script)
        process = subprocess.Popen(
            [*MISSTEP, "run", "--level", "guard", "--name", "try", *(launcher or (sys.executable,)), "train.py"],
            cwd=folder,
            env=environment_of_a_user(**settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.terminate()  # passed on to the launcher, which ends its workers; they have sessions of their own
        process.communicate(timeout=SECONDS)


HANGING = """
import threading
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
never = threading.Event()

def average(gradient):
    if dist.get_rank() == 1 and step == 3:
        never.wait()
    dist.all_reduce(gradient)

for step in range(1, 6):
    model(torch.randn(8, 4)).pow(2).mean().backward()
    for weight in model.parameters():
        average(weight.grad)
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
def test_a_hang_names_the_rank_that_did_not_come_and_the_collective_the_other_waits_in(
    folder: Path, start: Callable[..., subprocess.Popen[str]], misstep_command: RunCommand
) -> None:
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    process = start(HANGING, *torchrun, MISSTEP_HANG_SECONDS="3")
    bundle = folder / "missteps" / "try" / "records" / "hang.zip"

    def both_told() -> bool:
        if not bundle.exists():
            return False
        with zipfile.ZipFile(bundle) as archive:
            return {"rank-0/reports.jsonl", "rank-1/reports.jsonl"} <= set(archive.namelist())

    when(both_told, folder, process, seconds=SECONDS)
    moved = folder / "hang.zip"
    shutil.copyfile(bundle, moved)
    opened = misstep_command("open", str(moved), "--json")
    crash = json.loads(opened.out)
    assert [ending["event"]["kind"] for ending in crash["endings"]] == ["hang", "hang"]
    assert [ending["collective"] for ending in crash["endings"]] == ["all_reduce", ""]
    assert [ending["last_step"] for ending in crash["endings"]] == [2, 2]
    assert crash["culprit"]["rank"] == 1
    assert crash["culprit"]["spot"]["step"] == 3
    assert crash["culprit"]["spot"]["source"].startswith("train.py:")
    frames = [frame["code"] for frame in crash["frames"] if not frame.get("library")]
    assert frames[-1] == "never.wait()"
    assert causes(crash)[0] == "hang-collective"
    told = misstep_command("open", str(moved))
    assert "did not join" in told.out
    assert any("PyThread_acquire_lock" in frame for frame in crash["machine"])
    with zipfile.ZipFile(moved) as archive:
        waits = archive.read("rank-0/stacks/hang_native.txt").decode()
    main = next(block for block in waits.split("\nthread ") if ", main, " in block.partition("\n")[0])
    assert "libtorch" in main, waits
    assert "c10d::" in main, waits


def test_a_live_training_is_recorded_on_request_and_goes_on(
    folder: Path, start: Callable[..., subprocess.Popen[str]], misstep_command: RunCommand
) -> None:
    script = f"""
    {BREAKING.replace(chr(10), chr(10) + "    ")}
    import pathlib
    def fail(x):
        pathlib.Path("waiting").touch()
        while not pathlib.Path("go").exists():
            pass
    train()
    """
    process = start(script)
    when((folder / "waiting").exists, folder, process, seconds=SECONDS)
    asked = misstep_command("record", "try", "--to", "stuck.zip", "--json")
    assert (asked.exit, json.loads(asked.out)["asked"]) == (0, 1), asked.err
    crash = json.loads(misstep_command("open", "stuck.zip", "--json").out)
    assert (crash["culprit"]["event"]["kind"], spot(crash)) == ("asked", (4, "forward", "Breaking"))
    assert crash["culprit"]["spot"]["function"] == "fail"
    (folder / "go").touch()
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0


def test_a_run_that_attached_itself_and_was_killed_is_recorded_by_whoever_opens_it(
    folder: Path, write: Write, misstep_command: RunCommand
) -> None:
    failing = "def fail(x):\n    os.kill(os.getpid(), signal.SIGKILL)"
    attached = "import misstep\nmisstep.attach(model, optimizer, level='guard')"
    write("train.py", f"{BREAKING}\n{failing}\n{attached}\ntrain()\n")
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment_of_a_user(), timeout=SECONDS)
    assert done.returncode == -signal.SIGKILL
    assert list(folder.glob("missteps/*/records/*")) == []
    assert "misstep open" in misstep_command("ls").out
    assert "misstep open" in misstep_command("show", "last").out
    crash = json.loads(misstep_command("open", "last", "--json").out)
    assert (crash["kind"], spot(crash)) == ("crash", (4, "forward", "Breaking"))
    assert crash["culprit"]["spot"]["code"] == "loss = model(torch.randn(16, 4)).pow(2).mean()"
    assert [step["step"] for step in crash["steps"]] == [1, 2, 3]


def test_a_run_without_a_record_opens_as_show_does(run_story: RunStory, misstep_command: RunCommand) -> None:
    run_story(f"{BREAKING}\ndef fail(x): pass\ntrain()\n", "--name", "fine")
    assert json.loads(misstep_command("open", "fine", "--json").out)["state"] == "finished"
    assert misstep_command("open", "fine").out == misstep_command("show", "fine", "--most", "12").out


def test_what_is_no_flight_record_is_said_to_be_none(folder: Path, misstep_command: RunCommand) -> None:
    (folder / "holiday.zip").write_bytes(b"PK not really")
    opened = misstep_command("open", "holiday.zip")
    assert opened.exit == 1
    assert "holiday.zip" in opened.err
