"""A flight record opened: what each rank left behind, and the run it came from."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

from misstep.errors import FormatError
from misstep.store.boundary import TooMuch, json_object, plain_name, reading, unpacked, whole_number
from misstep.store.bundle.write import FORMAT, MANIFEST
from misstep.store.codec import from_json
from misstep.store.journal import unseal
from misstep.store.layout import rank_paths, ranks_in
from misstep.store.reading.reader import Run


@dataclass(frozen=True, slots=True)
class RankRecord:
    """What one rank left behind."""

    rank: int
    record: dict[str, Any] = field(default_factory=dict)
    """The ring: see bundle.py."""
    reports: tuple[dict[str, Any], ...] = ()
    stacks: dict[str, str] = field(default_factory=dict)
    """By name: fatal, terminated, asked, hang."""
    log: str = ""
    batch: tuple[str, ...] = ()


class Bundle:
    """An opened flight record; the unpacked files live as long as it does."""

    def __init__(self, path: Path, manifest: dict[str, Any], folder: tempfile.TemporaryDirectory[str]) -> None:
        self.path = path
        self.manifest = manifest
        self._folder = folder
        self.run = Run(Path(folder.name) / str(manifest.get("run") or "run"))
        self.ranks = tuple(_rank(self.run.path, rank) for rank in ranks_in(self.run.path))

    @property
    def kind(self) -> str:
        return str(self.manifest.get("kind", "crash"))

    @property
    def exit_code(self) -> int | None:
        code = self.manifest.get("exit")
        return code if isinstance(code, int) else None

    @property
    def note(self) -> str:
        return str(self.manifest.get("note", ""))

    @property
    def left_out(self) -> dict[str, Any]:
        """Whole tensors the run kept that there was no room for: `tensors`, `bytes`, the `first` names."""
        found = self.manifest.get("left_out")
        return found if isinstance(found, dict) else {}

    def close(self) -> None:
        self._folder.cleanup()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def open_bundle(path: Path | str) -> Bundle:
    """Open a flight record made on any machine.

    >>> with open_bundle("crash.zip") as bundle: bundle.run.last_step
    """
    path = Path(path)
    folder = tempfile.TemporaryDirectory(prefix="misstep-")
    try:
        with reading(path, "flight record of misstep"), zipfile.ZipFile(path) as archive:
            manifest = json_object(unpacked(archive, MANIFEST))
            if whole_number(manifest.get("format", 0), "a format") > FORMAT:
                raise FormatError(f"{path} was written by a later misstep:  pip install -U misstep", path=str(path))
            name = PurePosixPath(str(manifest.get("run") or "run")).name
            manifest["run"] = name if plain_name(name) else "run"
            _unpack(archive, Path(folder.name) / manifest["run"], room=_UNPACKED_AT_LEAST + 30 * path.stat().st_size)
            return Bundle(path, manifest, folder)
    except BaseException:
        folder.cleanup()
        raise


def bundle_run(path: Path | str) -> Path:
    """The run directory in a flight record, unpacked into a folder that lives as long as this process.

    >>> open_run(bundle_run("crash.zip")).verdict
    """
    where = Path(path).resolve()
    if where not in _UNPACKED:
        bundle = _UNPACKED[where] = open_bundle(where)
        atexit.register(bundle.close)
    return _UNPACKED[where].run.path


_UNPACKED: dict[Path, Bundle] = {}


_UNPACKED_AT_LEAST = 256 << 20
"""Bytes a record may unpack to, however small it is; beyond that thirty times its size."""
_MOST_FILES = 10_000


def _unpack(archive: zipfile.ZipFile, folder: Path, *, room: int) -> None:
    folder.mkdir()
    entries = archive.infolist()
    if len(entries) > _MOST_FILES or sum(entry.file_size for entry in entries) > room:
        raise TooMuch(f"at most {_MOST_FILES:,} files of {room:,} bytes together")
    for entry in entries:
        parts = PurePosixPath(entry.filename).parts
        if entry.is_dir() or ".." in parts or entry.filename.startswith(("/", "\\")):
            continue  # a bundle comes from somewhere else, and must not write anywhere else
        target = folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as packed, open(target, "xb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
        # Readers take a journal that was touched just now for one that is being written.
        with contextlib.suppress(ValueError, OverflowError):
            moment = time.mktime((*entry.date_time, 0, 0, -1))
            os.utime(target, (moment, moment))


def _rank(run: Path, rank: int) -> RankRecord:
    paths = rank_paths(run, rank)
    reports = []
    for line in _read(paths.reports).splitlines():
        plain = unseal(line)
        if plain is not None:
            reports.append(plain)
    try:
        record = from_json(_read(paths.directory / "record.json") or b"{}")
    except ValueError:
        record = {}
    record = record if isinstance(record, dict) else {}
    stacks = {
        file.stem: file.read_text(encoding="utf-8", errors="replace")
        for file in (sorted(paths.stacks.glob("*.txt")) if paths.stacks.is_dir() else ())
    }
    batch = paths.directory / "batch"
    return RankRecord(
        rank=rank,
        record=record,
        reports=tuple(reports),
        stacks=stacks,
        log=_read(paths.directory / "log.txt").decode("utf-8", "replace"),
        batch=tuple(sorted(file.name for file in batch.glob("*.npy"))) if batch.is_dir() else (),
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
