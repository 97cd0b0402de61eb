"""The flight recorder's file: what was whole when the process died is read, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from misstep.core import cells
from misstep.errors import RunDamaged
from misstep.store.bundle.batch import BatchFile, read_batch
from misstep.store.bundle.ring import LOG_BYTES, NOTE_BYTES, NOTES_AT, Ring, read_ring
from misstep.store.codec import to_json


def ring_at(path: Path, *, slots: int = 4) -> Ring:
    return Ring(path / "recorder.ring", slots=slots, slot_bytes=2048)


def test_the_last_steps_are_there_in_order_and_older_ones_made_room(tmp_path: Path) -> None:
    ring = ring_at(tmp_path)
    for step in range(1, 8):
        ring.put(to_json({"step": step}))
    assert [step["step"] for step in read_ring(ring.path).steps] == [4, 5, 6, 7]


def test_a_torn_slot_is_left_out_and_counted(tmp_path: Path) -> None:
    ring = ring_at(tmp_path)
    for step in range(1, 5):
        ring.put(to_json({"step": step}))
    at = NOTES_AT + 2 * NOTE_BYTES + (3 % 4) * 2048 + 18
    data = bytearray(ring.path.read_bytes())
    data[at] ^= 0xFF
    ring.path.write_bytes(data)
    recorded = read_ring(ring.path)
    assert ([step["step"] for step in recorded.steps], recorded.torn) == ([1, 2, 4], 1)


def test_the_cells_tell_where_it_is_without_being_flushed(tmp_path: Path) -> None:
    ring = ring_at(tmp_path)
    for module in range(100, 170):
        ring.cells[cells.ENTERED] += 1
        ring.cells[cells.TRAIL + (ring.cells[cells.ENTERED] & cells.TRAIL_MASK)] = module
    trail = list(cells.trail(read_ring(ring.path).cells))
    assert trail == list(range(169, 169 - cells.TRAIL_LENGTH, -1))


def test_of_the_notes_the_last_whole_one_holds(tmp_path: Path) -> None:
    ring = ring_at(tmp_path)
    ring.note({"files": ["a.py"]})
    ring.note({"files": ["a.py", "b.py"]})
    ring.note({"files": "x" * NOTE_BYTES})
    assert read_ring(ring.path).notes == {"files": ["a.py", "b.py"]}


def test_a_long_log_keeps_its_last_whole_lines(tmp_path: Path) -> None:
    ring = ring_at(tmp_path)
    for number in range(20_000):
        ring.log(b"line %d\n" % number)
    lines = read_ring(ring.path).log.splitlines()
    assert lines == [f"line {number}" for number in range(20_000 - len(lines), 20_000)]
    assert len(lines) > LOG_BYTES // 12


def test_what_is_no_ring_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "recorder.ring").write_bytes(b"something else")
    with pytest.raises(RunDamaged, match="no flight recorder"):
        read_ring(tmp_path / "recorder.ring")


def test_the_last_whole_batch_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    batches = BatchFile(tmp_path / "recorder.batch", limit_bytes=1 << 20)
    for step in (1, 2, 3):
        values = np.full((8, 4), step, np.float32)
        labels = np.arange(8)[::-1]  # not in memory order
        batches.put(step, [("float32", values, (8, 4)), ("int64", labels, (8,)), ("float32", None, (2,))])
    step, (first, second, third) = read_batch(tmp_path / "recorder.batch") or (0, [])
    assert step == 3
    assert first.values is not None
    assert second.values is not None
    assert (first.values == values).all()
    assert (second.values == labels).all()
    assert (third.values, third.digest) == (None, "")


def test_a_batch_beyond_the_budget_leaves_its_digest_only(tmp_path: Path) -> None:
    batches = BatchFile(tmp_path / "recorder.batch", limit_bytes=64 << 10)
    digest, *_ = batches.put(1, [("float32", np.zeros(1 << 20, np.float32), (1 << 20,))])
    assert len(digest) == 16
    assert read_batch(tmp_path / "recorder.batch") is None
