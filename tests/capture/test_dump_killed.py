"""kill -9 while tensors are being dumped, at two hundred random moments: whatever was told to be complete is there.

A moment is a number of bytes written to any file of the run: what is on the disk changes with those and with nothing
else, so the moments are spread over all of it and come at the same places however busy the machine is.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.capture.fakes import Net, trained

from misstep.capture.session import Session
from misstep.core.address import Address
from misstep.store.reading.reader import Run, open_run
from misstep.store.runs import list_runs
from misstep.store.writing import append
from misstep.store.writing.disk import Disk

STEPS = 24
SETTINGS: dict[str, Any] = {"dump": "*", "level": "op", "width": 64}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An undisturbed training of the same seed."""
    return trained(tmp_path_factory.mktemp("truth"), steps=STEPS, **SETTINGS)


class Mortal(Disk):
    """The disk of a process that dies of SIGKILL once it has written so many bytes, inside a write if need be."""

    def __init__(self, moment: int) -> None:
        self._left = moment

    def write(self, file: int, data: Any) -> int:  # type: ignore[override]
        if len(data) <= self._left:
            self._left -= len(data)
            return os.write(file, data)
        os.write(file, bytes(data)[: self._left])
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")

    def writev(self, file: int, parts: Any) -> int:  # type: ignore[override]
        return self.write(file, b"".join(parts))


def trainee(folder: Path, pipe: int, *, asynchronous: bool) -> None:
    """In a forked process: train, and tell the pipe after each step that everything of it is complete."""

    def tell(session: Session, step: int, net: Net) -> None:
        buffer = session.dumper.buffer if session.dumper is not None else None
        if buffer is not None and step % 2 == 0:
            buffer.drain()
        if buffer is None or step % 2 == 0:
            os.write(pipe, bytes([step]))

    trained(folder, steps=STEPS, each_step=tell, dump_async=asynchronous, dump_buffer_mb=1, **SETTINGS)


def killed(folder: Path, moment: int, *, asynchronous: bool) -> int:
    """Let a trainee die at a moment; the last step it told."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            append.DISK = Mortal(moment)
            trainee(folder, write, asynchronous=asynchronous)
        finally:
            os._exit(0)
    os.close(write)
    told = 0
    while said := os.read(read, STEPS):
        told = max(told, *said)
    _, status = os.waitpid(child, 0)
    os.close(read)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    return told


@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
def test_every_completed_tensor_survives_kill_nine(tmp_path: Path, whole: Run, asynchronous: bool) -> None:
    truth = {stored.address: whole.tensor(stored.address).tobytes() for stored in whole.tensors()}
    everything = (Path(whole.path) / "rank-0/tensors.pack").stat().st_size  # less than all files: every moment comes
    choose = random.Random(11)
    inside = complete = 0
    for number in range(100):
        folder = tmp_path / str(number)
        told = killed(folder, choose.randrange(everything), asynchronous=asynchronous)
        runs = list_runs(folder)
        assert len(runs) <= 1
        found: set[Address] = set()
        for one in runs:
            run = open_run(one.path)
            # A last record cut off is what a kill leaves; anything else is damage.
            assert [said for said in run.damage if "cut off" not in said and "no whole" not in said] == []
            for stored in run.tensors():
                # run.tensor compares the checksum; the bytes are compared with those of the undisturbed training.
                assert run.tensor(stored.address).tobytes() == truth[stored.address]
                found.add(stored.address)
        promised = {address for address in truth if 0 < (address.step or 0) <= told}
        assert promised <= found
        complete += len(promised)
        inside += bool({address.step for address in found} - {address.step for address in promised} - {0})
    assert complete > 0
    assert inside > 50, "most were killed between two steps; nothing was proved"
