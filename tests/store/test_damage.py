"""A run directory that was cut off, damaged or killed: everything before the damage is readable."""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from small_run import NODES, begin, child_environment, record, rows, train, values

from misstep.core.address import Address
from misstep.core.run import Step
from misstep.errors import TensorUnavailable
from misstep.store.journal import seal
from misstep.store.pack import PackReader, StoredTensor, pack_record
from misstep.store.reading.reader import open_run
from misstep.store.runs import list_runs
from misstep.store.statsfile import HEADER_BYTES, ROW_BYTES


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("runs") / "whole", steps=3)


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "try"))


def test_a_journal_cut_anywhere_in_its_last_line_loses_that_line_only(run: Path) -> None:
    path = run / "rank-0/journal.jsonl"
    data = path.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    expected = [event.kind for event in open_run(run).events()][:-1]
    for size in range(start, len(data)):
        path.write_bytes(data[:size])
        opened = open_run(run)
        assert [event.kind for event in opened.events()] == expected
        # The process that wrote it is this one, which lives: without the end the run goes on.
        assert (opened.state, opened.damage) == ("running", [])


def test_a_graph_cut_anywhere_in_its_last_line_loses_that_line_only(run: Path) -> None:
    path = run / "rank-0/graph.jsonl"
    data = path.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    for size in range(start, len(data)):
        path.write_bytes(data[:size])
        graph = open_run(run).graph()
        assert (len(graph.nodes), len(graph.tensors), graph.shapes, graph.edges) == (3, 3, [(2, 3, 4)], [])
        assert len(open_run(run).damage) == (1 if size > start else 0)


def test_statistics_cut_anywhere_in_the_last_row_lose_that_row_only(run: Path) -> None:
    path = run / "rank-0/stats.bin"
    data = path.read_bytes()
    for size in range(len(data) - ROW_BYTES, len(data)):
        path.write_bytes(data[:size])
        opened = open_run(run)
        assert opened.history(NODES[1])["step"].tolist() == [1, 2, 3]
        assert opened.history(NODES[2])["step"].tolist() == [1, 2]


def test_an_index_cut_anywhere_in_the_last_record_loses_that_tensor_only(run: Path) -> None:
    path = run / "rank-0/tensors.idx"
    data = path.read_bytes()
    for size in range(data.rfind(b"TNSR"), len(data)):
        path.write_bytes(data[:size])
        opened = open_run(run)
        assert [stored.address.step for stored in opened.tensors()] == [1, 2]
        assert (opened.tensor("encoder.fc:output@2") == values(2)).all()


def test_a_pack_cut_anywhere_in_the_last_tensor_loses_that_tensor_only(run: Path) -> None:
    path = run / "rank-0/tensors.pack"
    data = path.read_bytes()
    for size in range(len(data) - values(3).nbytes, len(data)):
        path.write_bytes(data[:size])
        opened = open_run(run)
        assert (opened.tensor("encoder.fc:output@2") == values(2)).all()
        with pytest.raises(TensorUnavailable, match="cut off or copied in part"):
            opened.tensor("encoder.fc:output@3")
    assert "cut off" in opened.verify()[0]


@pytest.mark.parametrize("name", ["journal.jsonl", "graph.jsonl", "stats.bin", "tensors.idx", "tensors.pack"])
def test_a_file_cut_at_any_byte_leaves_a_run_that_opens(run: Path, name: str) -> None:
    path = run / "rank-0" / name
    data = path.read_bytes()
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        opened = open_run(run)
        whole_lines = data[:size].split(b"\n")[:-1] if name == "journal.jsonl" else []
        told = sum(line.startswith((b"[", b'{"kind":"step"')) for line in whole_lines) if name == "journal.jsonl" else 3
        assert len(opened.steps()) == told
        assert len(list_runs(run.parent)) == 1
    path.unlink()
    open_run(run).verify()


@pytest.mark.parametrize(
    "name", ["journal.jsonl", "graph.jsonl", "stats.bin", "tensors.idx", "tensors.pack", "run.json"]
)
def test_a_changed_byte_anywhere_is_noticed_and_spoils_little(run: Path, name: str) -> None:
    path = run / "rank-0" / name if name != "run.json" else run / name
    data = path.read_bytes()
    noise = random.Random(7)
    skip = {"stats.bin": HEADER_BYTES, "tensors.idx": 64, "tensors.pack": 64}.get(name, 0)
    for _ in range(60):
        place = noise.randrange(skip, len(data))
        if name == "tensors.pack" and data[place] == 0 and (place % 64) >= values(1).nbytes:
            continue  # padding between tensors means nothing
        changed = bytearray(data)
        changed[place] ^= 1 << noise.randrange(8)
        path.write_bytes(changed)
        if name == "run.json":
            assert len(open_run(run).steps()) == 3
            continue
        opened = open_run(run)
        assert len(opened.verify()) >= 1, place
        assert len(opened.steps()) >= 2
        assert len(opened.graph().nodes) >= 2
        assert len(opened.stats("*")) >= 5


def test_a_damaged_line_in_the_middle_is_skipped_and_told(run: Path) -> None:
    path = run / "rank-0/journal.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"\n[2,", b"\n[9,"))
    opened = open_run(run)
    assert [step.number for step in opened.steps()] == [1, 3]
    at = data.find(b"\n[2,") + 1
    assert opened.damage == [f"rank-0/journal.jsonl: 1 damaged line skipped, at byte {at}"]


def test_a_damaged_row_is_skipped_and_told(run: Path) -> None:
    path = run / "rank-0/stats.bin"
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 3 * ROW_BYTES + 90] ^= 4  # the first row of step 2
    path.write_bytes(data)
    opened = open_run(run)
    assert opened.history(NODES[0])["step"].tolist() == [1, 3]
    assert opened.damage == ["rank-0/stats.bin: 1 damaged row skipped, the first is row 3"]


def test_a_hole_of_zeros_is_no_row(run: Path) -> None:
    path = run / "rank-0/stats.bin"
    with open(path, "ab") as file:
        file.write(bytes(2 * ROW_BYTES))
    opened = open_run(run)
    assert opened.history(NODES[0])["step"].tolist() == [1, 2, 3]
    assert opened.verify() == ["rank-0/stats.bin: 2 damaged rows skipped, the first is row 9"]


def test_a_damaged_record_of_the_index_costs_one_tensor(run: Path) -> None:
    path = run / "rank-0/tensors.idx"
    data = bytearray(path.read_bytes())
    second = data.find(b"TNSR", data.find(b"TNSR") + 1)
    data[second + 5] ^= 0xFF  # its length, so that the next record must be searched for
    path.write_bytes(data)
    opened = open_run(run)
    assert [stored.address.step for stored in opened.tensors()] == [1, 3]
    assert opened.verify() == [f"rank-0/tensors.idx: damage skipped in 1 place, the first at byte {second}"]


def test_a_sound_record_that_makes_no_sense_here_is_passed_over(run: Path) -> None:
    with open(run / "rank-0/journal.jsonl", "ab") as file:
        file.write(
            seal({"kind": "hit", "time": 1.0, "hit": {"id": 9, "watchpoint": 1, "address": "fc:mood", "reason": ""}})
        )
        file.write(seal({"kind": "dance", "time": 2.0}))
    with open(run / "rank-0/tensors.idx", "ab") as file:
        known = pack_record(StoredTensor(Address("fc", step=1), "float32", (), 64, 4, 0))
        body = known[12:].replace(b"fc:output", b"fc:outfit")
        file.write(known[:8] + zlib.crc32(body).to_bytes(4, "little") + body)
    opened = open_run(run)
    assert (len(opened.hits()), len(opened.tensors()), opened.events()[-1].kind) == (3, 3, "dance")
    assert "a hit event makes no sense (unknown role 'mood'" in opened.damage[0]
    assert "tensors.idx: damage skipped in 1 place" in opened.damage[1]


def test_a_damaged_tensor_is_refused(run: Path) -> None:
    path = run / "rank-0/tensors.pack"
    data = bytearray(path.read_bytes())
    data[64 + 64] ^= 1  # the second tensor
    path.write_bytes(data)
    with pytest.raises(TensorUnavailable, match="its checksum does not fit"):
        open_run(run).tensor("encoder.fc:output@2")
    assert (open_run(run).tensor("encoder.fc:output@3") == values(3)).all()


def as_version_1(index: Path, pack: Path) -> None:
    """The index as misstep wrote it before: a CRC-32 of 32 bits where the digest is now."""
    reader = PackReader(pack, index)
    reader.refresh()
    old = bytearray(index.read_bytes()[:64])
    old[8:12] = (1).to_bytes(4, "little")
    for stored in reader.stored.values():
        body = pack_record(stored)[12:]
        crc = zlib.crc32(pack.read_bytes()[stored.offset : stored.offset + stored.bytes])
        body = body[:16] + crc.to_bytes(4, "little") + body[24:]
        old += b"TNSR" + struct.pack("<II", len(body), zlib.crc32(body)) + body
    index.write_bytes(old)


def test_a_pack_with_the_checksums_of_version_1_is_read_and_checked(run: Path) -> None:
    pack = run / "rank-0/tensors.pack"
    as_version_1(run / "rank-0/tensors.idx", pack)
    assert open_run(run).verify() == []
    for step in (1, 2, 3):
        assert (open_run(run).tensor(f"encoder.fc:output@{step}") == values(step)).all()
    data = bytearray(pack.read_bytes())
    data[64 + 64] ^= 1
    pack.write_bytes(data)
    with pytest.raises(TensorUnavailable, match="its checksum does not fit"):
        open_run(run).tensor("encoder.fc:output@2")


def test_a_damaged_node_leaves_the_names_of_the_others_right(run: Path) -> None:
    path = run / "rank-0/graph.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"name":"encoder.norm"', b'"name":"encoder.nxrm"'))
    opened = open_run(run)
    assert opened.history(NODES[2])["mean"].tolist() == [1.2, 2.2, 3.2]
    assert opened.graph().nodes[1].name == "(lost 1)"


def test_a_damaged_row_of_the_tensor_table_leaves_the_others_right(run: Path) -> None:
    path = run / "rank-0/graph.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"index":1,"tensor":{"node":1', b'"index":1,"tensor":{"node":7'))
    opened = open_run(run)
    assert opened.history(NODES[2])["mean"].tolist() == [1.2, 2.2, 3.2]
    assert [address.node for address, _ in opened.step_rows(1)] == [NODES[0], "(lost 3)", NODES[2]]


def test_a_run_without_its_run_json_still_opens(run: Path) -> None:
    (run / "run.json").unlink()
    opened = open_run(run)
    assert (opened.info.name, len(opened.steps()), opened.damage) == ("try", 3, ["run.json: missing"])


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"name": 3}', b"\xff\xfe"])
def test_a_run_json_that_makes_no_sense_is_told_and_passed_over(run: Path, junk: bytes) -> None:
    (run / "run.json").write_bytes(junk)
    opened = open_run(run)
    assert (len(opened.steps()), len(opened.damage)) == (3, 1)
    assert list_runs(run.parent)[0].steps == 3


def test_files_of_junk_open_as_damage(run: Path) -> None:
    for path in (run / "rank-0").iterdir():
        path.write_bytes(np.random.default_rng(3).bytes(5000))
    opened = open_run(run)
    opened.verify()
    assert (opened.steps(), opened.tensors(), opened.state) == ([], [], "lost")
    assert len(opened.damage) >= 3


def test_a_writer_killed_at_any_moment_leaves_a_sound_run(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, itertools, small_run as r\n"
        "w = r.begin(pathlib.Path(sys.argv[1]))\n"
        "for step in itertools.count(1):\n"
        "    r.train(w, step, step)\n"
        "    if step == 3: print('training', flush=True)\n"
    )
    moments = random.Random(11)
    for attempt in range(6):
        directory = tmp_path / f"try-{attempt}"
        with subprocess.Popen(
            [sys.executable, "-c", script, str(directory)], env=child_environment(), stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"training\n"
            journal = directory / "rank-0/journal.jsonl"
            enough = journal.stat().st_size + moments.randrange(40_000)
            while journal.stat().st_size < enough:
                assert process.poll() is None
            os.kill(process.pid, signal.SIGKILL)
        run = open_run(directory)
        steps = [step.number for step in run.steps()]
        assert run.state == "lost"
        assert steps == list(range(1, len(steps) + 1))
        assert len(steps) >= 3
        for node in NODES:
            assert run.history(node)["step"].tolist()[: len(steps)] == steps
        for step in steps:
            assert (run.tensor(Address("encoder.fc", step=step)) == values(step)).all()
        assert all("cut off" in sentence or "no whole record" in sentence for sentence in run.verify())


def test_a_reader_that_looks_while_a_line_is_half_written_reads_it_later(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    train(writer, 1, 1)
    path = tmp_path / "try/rank-0/journal.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    run = open_run(tmp_path / "try")
    assert (run.steps(), run.damage) == ([], [])
    path.write_bytes(data)
    writer.step(Step(2, loss=0.5), *rows(2))
    assert [step.number for step in run.refresh().steps()] == [1, 2]
