"""kill -9 while tensors are being dumped, at two hundred random moments: whatever was told to be complete is there."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.capture.fakes import Net, trained

from misstep.capture.session import Session
from misstep.core.address import Address
from misstep.store.reader import open_run
from misstep.store.runs import list_runs

STEPS = 24
SETTINGS: dict[str, Any] = {"dump": "*", "level": "op", "width": 64}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[Address, bytes]:
    """What an undisturbed training of the same seed dumps."""
    run = trained(tmp_path_factory.mktemp("truth"), steps=STEPS, **SETTINGS)
    return {stored.address: run.tensor(stored.address).tobytes() for stored in run.tensors()}


def trainee(folder: Path, pipe: int, *, asynchronous: bool) -> None:
    """In a forked process: train, and tell the pipe after each step that everything of it is complete."""

    def tell(session: Session, step: int, net: Net) -> None:
        buffer = session.dumper.buffer if session.dumper is not None else None
        if buffer is not None and step % 2 == 0:
            buffer.drain()
        if buffer is None or step % 2 == 0:
            os.write(pipe, bytes([step]))

    trained(folder, steps=STEPS, each_step=tell, dump_async=asynchronous, dump_buffer_mb=1, **SETTINGS)


def killed(folder: Path, choose: random.Random, *, asynchronous: bool) -> int:
    """Start a trainee and kill it some microseconds after a random number of steps; the last step it told."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            trainee(folder, write, asynchronous=asynchronous)
        finally:
            os._exit(0)
    os.close(write)
    told = 0
    for _ in range(choose.randrange(0, 4)):
        said = os.read(read, 1)
        if not said:
            break
        told = said[0]
    moment = time.perf_counter() + choose.random() * 0.012
    while time.perf_counter() < moment:  # a moment, not an event: anywhere inside a write
        pass
    os.kill(child, signal.SIGKILL)
    while said := os.read(read, STEPS):
        told = max(told, *said)
    os.waitpid(child, 0)
    os.close(read)
    return told


@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
def test_every_completed_tensor_survives_kill_nine(
    tmp_path: Path, truth: dict[Address, bytes], asynchronous: bool
) -> None:
    choose = random.Random(11)
    inside = complete = 0
    for number in range(100):
        folder = tmp_path / str(number)
        told = killed(folder, choose, asynchronous=asynchronous)
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
    assert inside > 20, "most were killed between two steps; nothing was proved"
