"""The asynchronous dump over a disk slower than the training: what waits, what is dropped, what memory it takes."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.capture.fakes import Net, trained
from tests.capture.test_dump import kept

from misstep.capture.keep.buffer import DumpBuffer, Job, RoundBlock
from misstep.capture.session import Session
from misstep.store.reading.reader import open_run


class SlowDisk:
    """Stands between the writer and the pack: a pipe, which blocks when full, emptied by a relay in small bites.

    It takes nothing until it is opened, or until training waits for it.
    """

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.open = threading.Event()
        self.bites = 0
        self._thread: threading.Thread | None = None
        self._between = threading.Event()

    def put_under(self, session: Session) -> None:
        assert session.writer is not None
        pack = session.writer._files[3]
        assert pack.size == 0, "something was dumped already"
        pack._descriptor = self.write
        self._thread = threading.Thread(target=self._relay, args=(pack.path, session.dumper))
        self._thread.start()

    def _relay(self, path: Path, dumper: Any) -> None:
        with open(path, "wb") as file:
            while not self.open.wait(0.001):
                if dumper.buffer is not None and dumper.buffer.waits:
                    break
            while data := os.read(self.read, 1 << 16):
                file.write(data)
                self.bites += 1
                self._between.wait(0.0005)

    def done(self) -> None:
        self.open.set()
        os.close(self.write)
        assert self._thread is not None
        self._thread.join()
        os.close(self.read)


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


def dumped_slowly(folder: Path, disk: SlowDisk, *, width: int = 4096, **settings: Any) -> Any:
    """Six steps, dumped from the second on."""
    seen: dict[str, Any] = {}

    def each(session: Session, step: int, net: Net) -> None:
        if step == 1:
            disk.put_under(session)
        if step == 6:
            disk.open.set()
        if session.dumper is not None:
            seen["buffer"] = session.dumper.buffer
            seen["kept"] = session.dumper.kept

    run = trained(folder, steps=6, width=width, dump="*@2:", dump_async=True, each_step=each, **settings)
    disk.done()
    return open_run(run.path), seen


def test_a_full_buffer_makes_training_wait_and_loses_nothing(tmp_path: Path, disk: SlowDisk) -> None:
    run, seen = dumped_slowly(tmp_path, disk, dump_buffer_mb=1)
    buffer = seen["buffer"]
    total = sum(stored.bytes for stored in run.tensors())
    assert total > 4 * 2**20
    assert disk.bites > 16
    assert buffer.waits > 0
    assert buffer.most_used <= 2**20
    assert len(buffer.ring.block) == 2**20
    assert (run.lost, run.verify()) == ({}, [])
    assert len(run.tensors()) == seen["kept"]


def test_with_drop_training_never_waits_and_what_is_lost_is_counted_and_named(tmp_path: Path, disk: SlowDisk) -> None:
    run, seen = dumped_slowly(tmp_path, disk, dump_buffer_mb=1, dump_full="drop")
    assert seen["buffer"].waits == 0
    assert seen["buffer"].most_used <= 2**20
    lost = run.lost["tensor"]
    told = run.events("lost")
    assert lost > 0
    assert sum(event.facts.get("new", 0) for event in told) == lost
    named = {name.removesuffix(" (the buffer was full)") for event in told for name in event.facts.get("tensors", ())}
    assert named
    assert not named & {f"{address}#0" for address in kept(run)}
    # Whatever was not dropped is there, whole.
    assert len(run.tensors()) == seen["kept"]
    assert run.verify() == []


def test_a_tensor_larger_than_the_buffer_is_written_from_where_it_lies(tmp_path: Path, disk: SlowDisk) -> None:
    run, seen = dumped_slowly(tmp_path, disk, width=120_000, dump_buffer_mb=1)
    assert max(stored.bytes for stored in run.tensors()) > 2**20
    assert seen["buffer"].most_used <= 2**20
    assert (run.lost, run.verify()) == ({}, [])


def test_asynchronous_and_synchronous_dumps_hold_the_same_tensors(tmp_path: Path) -> None:
    one = trained(tmp_path / "one", dump="*")
    other = trained(tmp_path / "other", dump="*", dump_async=True)
    assert kept(one) == kept(other)
    for stored in one.tensors():
        np.testing.assert_array_equal(one.tensor(stored.address), other.tensor(stored.address))
    sizes = [run.path / "rank-0" / "tensors.pack" for run in (one, other)]
    assert sizes[0].stat().st_size == sizes[1].stat().st_size


def test_places_in_the_block_never_overlap() -> None:
    choose = random.Random(3)
    ring = RoundBlock(4096)
    taken: list[tuple[int, int]] = []
    wrapped = refused = 0
    for _ in range(5000):
        if taken and choose.random() < 0.45:
            ring.give_back()
            taken.pop(0)
        size = choose.choice([0, 1, 64, 100, 700, 1500])
        begin = ring.take(size)
        if begin is None:
            refused += 1
            continue
        wrapped += bool(taken) and begin < taken[-1][0]
        end = begin + max(size, 1)
        assert 0 <= begin < end <= 4096
        assert all(end <= other or begin >= stop for other, stop in taken)
        taken.append((begin, end))
    assert wrapped > 20
    assert refused > 50


def test_an_empty_block_always_has_room_for_what_fits() -> None:
    ring = RoundBlock(4096)
    for _ in range(20):
        assert ring.take(4000) is not None
        assert ring.take(1000) is None
        ring.give_back()
    assert ring.used == 0
    assert not ring.fits(5000)


def test_the_thread_ends_with_the_buffer() -> None:
    written: list[bytes] = []
    buffer = DumpBuffer(lambda job, data: written.append(bytes(data or b"")), limit_bytes=1 << 16, when_full="wait")
    for number in range(100):
        assert buffer.put(Job(b"fc:output", "uint8", (1000,)), np.full(1000, number, np.uint8))
    buffer.close()
    assert written == [bytes([number]) * 1000 for number in range(100)]
    assert not buffer._thread.is_alive()
