"""Small files that used to cost gigabytes, a traceback, or the reading of the next file: each ends with one error."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import small_run

from misstep.errors import FormatError, MisstepError
from misstep.store.bundle.open import open_bundle
from misstep.store.checkpoint import read_checkpoint, write_safetensors
from misstep.store.foreign.eventfile import masked
from misstep.store.foreign.mindspore.summary import read_summary
from misstep.store.foreign.sniff import source_of
from misstep.store.journal import seal
from misstep.store.layout import rank_paths
from misstep.store.reading.reader import open_run

ALLOWED_MB = 200


def torch_zip(path: Path, pickled: bytes, *, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("m/data.pkl", pickled)
        archive.writestr("m/data/0", bytes(16))
    return path


def laughs() -> bytes:
    """Nine lists, each nine times the one before: 387 million leaves in two hundred bytes."""
    made = b"\x80\x02](K\x01K\x02eq\x00"
    for level in range(9):
        made += b"](" + b"h%c" % level * 9 + b"eq%c" % (level + 1)
    return made + b"."


def deep(opening: bytes, closing: bytes) -> bytes:
    return b"\x80\x02" + opening * 100_000 + b"K\x01" + closing * 100_000 + b"."


def copies() -> bytes:
    """A megabyte of text, encoded again by every five bytes."""
    text = b"X" + struct.pack("<I", 1 << 20) + b"a" * (1 << 20) + b"q\x00"
    return b"\x80\x02](" + b"c_codecs\nencode\nq\x01" + text + b"0" + b"h\x01h\x00\x85R" * 20_000 + b"e."


BOMBS = {
    "memo slot 4,294,967,295": b"\x80\x02K\x01r\xff\xff\xff\xff.",
    "billion laughs": laughs(),
    "a text copied twenty thousand times": copies(),
    "nested tuples": deep(b"", b"\x85"),
    "nested tuples as a key": b"\x80\x02}K\x01" + b"\x85" * 200_000 + b"K\x01s.",
    "a list that holds itself": b"\x80\x02]q\x00h\x00a.",
    "a table that holds itself": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
    "a text longer than the file": b"\x80\x02\x8d" + struct.pack("<Q", 1 << 40) + b".",
    "a reference described by its billion leaves": laughs()[:-1] + b"Q.",
    "an unknown operation": b"\x80\x02\xff.",
    "empty": b"",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_pickle_that_asks_for_too_much_is_an_error(name: str, tmp_path: Path) -> None:
    path = torch_zip(tmp_path / "bomb.pt", BOMBS[name])
    assert_cheap_error(f"from misstep.store.checkpoint import read_checkpoint; read_checkpoint({str(path)!r})", path)


def test_a_structure_that_unpacks_to_gigabytes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("m/data.pkl", "w") as out:
        for _ in range(400):
            out.write(bytes(1 << 20))
    assert_cheap_error(f"from misstep.store.checkpoint import read_checkpoint; read_checkpoint({str(path)!r})", path)


def test_a_flight_record_that_unpacks_to_gigabytes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps({"format": 1, "run": "r"}))
        with archive.open("rank-0/stats.bin", "w") as out:
            for _ in range(400):
                out.write(bytes(1 << 20))
    assert_cheap_error(f"from misstep.store.bundle.open import open_bundle; open_bundle({str(path)!r})", path)


def test_a_damaged_row_and_a_damaged_index_cost_nothing(tmp_path: Path) -> None:
    writer = small_run.begin(tmp_path / "run")
    small_run.train(writer, 1, 3)
    writer.close()
    paths = rank_paths(tmp_path / "run", 0)
    with open(paths.stats, "ab") as file:
        file.write(b"\xff" * 128)
    with open(paths.graph, "ab") as file:
        file.write(seal({"kind": "shape", "index": 2_000_000_000, "shape": [1]}))
        file.write(seal({"kind": "tensor", "index": 3, "tensor": {"node": 1_000_000_000, "role": "output"}}))
    code = (
        "from misstep.store.reading.reader import open_run\n"
        f"run = open_run({str(tmp_path / 'run')!r})\n"
        "assert len(run.stats('*')) == 9 and len(run.verify()) == 3, run.verify()\n"
        "from misstep.errors import FormatError; raise FormatError('fine', path='run')"
    )
    assert_cheap_error(code, tmp_path / "run")


def assert_cheap_error(code: str, path: Path) -> None:
    """In a process of its own: it ends with a FormatError that names the file, and never had more than 200 MB."""
    script = (
        "from misstep.errors import FormatError\ntry:\n"
        + "\n".join(f"    {line}" for line in code.splitlines())
        + "\n    raise SystemExit('no error')\nexcept FormatError as wrong:\n    print(wrong.path)\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(int(status['VmHWM'].split()[0]) // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    named, peak = done.stdout.split()
    assert named in (str(path), "run")
    assert int(peak) < ALLOWED_MB


def test_one_file_cannot_change_how_the_next_is_read(tmp_path: Path) -> None:
    # Slot state on a class sets attributes of the class itself: every later reading would use them.
    for number, name in enumerate((b"argparse\nNamespace", b"collections\nOrderedDict", b"torch\nSize")):
        evil = b"\x80\x02c" + name + b"\nN}X\x08\x00\x00\x00__init__K\x01s\x86b."
        with pytest.raises(FormatError, match="takes a state"):
            read_checkpoint(torch_zip(tmp_path / f"evil{number}.pt", evil))
    good = pickle.dumps({"epoch": 3}, protocol=2)
    assert read_checkpoint(torch_zip(tmp_path / "good.pt", good)).extras == {"epoch": 3}


HEADERS: dict[str, dict[str, object] | bytes] = {
    "a hole": {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}},
    "an overlap": {
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [2, 6]},
    },
    "a tail": {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}},
    "a negative size": {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}},
    "a size that overflows": {"a": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 8]}},
    "no offsets": {"a": {"dtype": "F32", "shape": [2]}},
    "a list": b"[]",
    "a name twice": b"{%b,%b}" % ((b'"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}',) * 2),
    "metadata of numbers": {"__metadata__": {"a": 1}, "a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}},
    "nesting": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_safetensors_header_is_checked_as_the_format_says(name: str, tmp_path: Path) -> None:
    said = HEADERS[name]
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(FormatError) as wrong:
        read_checkpoint(path) if text[:1] == b"{" else source_of(path)
    assert wrong.value.path == str(path)


def test_an_error_names_file_byte_and_what_was_expected(tmp_path: Path) -> None:
    path = torch_zip(tmp_path / "cut.pt", b"\x80\x02}X\xff\x00\x00\x00ab")
    with pytest.raises(FormatError) as wrong:
        read_checkpoint(path)
    assert (wrong.value.path, wrong.value.offset) == (str(path), 8)
    assert "255 more bytes" in wrong.value.expected
    assert "cut.pt" in str(wrong.value)


@pytest.mark.parametrize("run", ["..", "../../x", "/etc", "a\0b", "x" * 300])
def test_a_record_unpacks_inside_its_own_folder(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = tmp_path / "record.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": 1, "run": run}))
        archive.writestr("run.json", "{}")
        archive.writestr("../../out.txt", "outside")
    with open_bundle(path) as bundle:
        assert (tmp_path / "temporary") in bundle.run.path.parent.parents
        assert {file.name for file in bundle.run.path.iterdir()} == {"manifest.json", "run.json"}


def test_deep_json_is_an_error_everywhere(tmp_path: Path) -> None:
    deep_json = b'{"data":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001
    (tmp_path / "dump.json").write_bytes(deep_json)
    with pytest.raises(FormatError):
        source_of(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_bytes(deep_json)
    with pytest.raises(FormatError):
        read_checkpoint(tmp_path / "model.safetensors.index.json")
    run = tmp_path / "run"
    writer = small_run.begin(run)
    writer.close()
    (run / "run.json").write_bytes(deep_json)
    with open(rank_paths(run, 0).journal, "ab") as file:
        body = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
        file.write(body[:-1] + b',"crc":"%08x"}' % zlib.crc32(body) + b"\n")
    assert open_run(run).damage


def test_shards_are_looked_for_beside_their_index_alone(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "secret.safetensors", {"w": np.ones(2, np.float32)})
    (tmp_path / "model").mkdir()
    index = tmp_path / "model" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "../secret.safetensors"}}))
    with pytest.raises(FormatError, match="beside the index"):
        read_checkpoint(index)


def test_a_record_longer_than_its_event_file_is_not_waited_for(tmp_path: Path) -> None:
    head = struct.pack("<Q", 1 << 62)
    path = tmp_path / "events.out.events.summary.1700000000.0.host_MS"
    path.write_bytes(head + struct.pack("<I", masked(head)) + b"abc")
    assert read_summary(path).scalars == {}


def test_every_flipped_byte_of_small_files_is_an_error_or_harmless(tmp_path: Path) -> None:
    files = {
        "m.safetensors": lambda path: write_safetensors(path, {"a": np.ones(2, np.float32), "b": np.zeros(1)}),
        "m.npz": lambda path: np.savez(path, a=np.ones(2), b=np.zeros((1, 2), np.int8)),
        "m.npy": lambda path: np.save(path, np.ones((2, 2))),
    }
    for name, write in files.items():
        path = tmp_path / name
        write(path)
        sound = path.read_bytes()
        for at in range(len(sound)):
            path.write_bytes(sound[:at] + bytes([sound[at] ^ 0xFF]) + sound[at + 1 :])
            try:
                source = source_of(str(path) if path.suffix != ".npy" else tmp_path)
                for entry in source.entries():
                    source.array(entry)
            except MisstepError:
                pass
        os.unlink(path)
