"""Files in, files out: a source or a folder ported, written whole or not at all, then imported and checked.

>>> port_project("model.py:build", data="batch.npz").files[0].done
1.0
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misstep.diagnosis.lint.source import Source, python_files, read_source
from misstep.errors import MigrationError
from misstep.migration.apimap.table import load
from misstep.migration.port.file import Ported, port_source
from misstep.sentences import porting as sentences

HEADER = "# Ported by misstep from {name} ({digest})\n"
_SIGNED = "# Ported by misstep from "
_PATIENCE = 600.0
_IMPORT = (
    "import sys; from pathlib import Path; from misstep.migration.sources import load_file; "
    "load_file(Path(sys.argv[1]))"
)


@dataclass(slots=True)
class Outcome:
    """What became of one file."""

    ported: Ported
    target: Path
    importable: bool | None = None
    """None when nobody tried."""
    trouble: str = ""
    stages: list[dict[str, Any]] = field(default_factory=list)
    """What `misstep migrate check` said, stage by stage; empty when it was not run."""
    same: bool | None = None


@dataclass(slots=True)
class Port:
    """A project, ported."""

    files: list[Outcome] = field(default_factory=list)
    copied: list[Path] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        return all(not one.ported.left and one.importable is not False and one.same is not False for one in self.files)


def port_project(spec: str, *, out: str | None = None, data: str | None = None, try_it: bool = True) -> Port:
    """Port a file, `file.py:function`, or every file of a folder."""
    path, function = _named(spec)
    sources = _sources(path)
    target = _target_folder(path, out)
    found = Port()
    texts: dict[Path, str] = {}
    for source in sources:
        place = _place(Path(source.path), path, target, beside=out is None)
        if not _uses_torch(source):
            if path.is_dir():
                texts[place] = source.text
                found.copied.append(place)
                continue
            raise MigrationError(sentences.NO_TORCH.of(path=source.path))
        ported = port_source(source, load())
        texts[place] = _signed(ported.text, Path(source.path).name)
        found.files.append(Outcome(ported, place))
    for place in texts:
        _refuse_to_destroy(place)
    _write(texts)
    if try_it:
        for one in found.files:
            _try(one, function, data)
    return found


def _named(spec: str) -> tuple[Path, str]:
    head, _, function = spec.rpartition(":")
    return (Path(head), function) if head.endswith(".py") else (Path(spec), "build")


def _sources(path: Path) -> list[Source]:
    others: dict[str, Source | None] = {}
    found = [read_source(one, others) for one, _ in python_files([path])]
    if not found:
        raise MigrationError(sentences.NO_SOURCE.of(paths=[str(path)]))
    return found


def _uses_torch(source: Source) -> bool:
    return any(dotted.partition(".")[0] == "torch" for dotted in source.imports.values())


def _target_folder(path: Path, out: str | None) -> Path:
    if out is not None:
        return Path(out)
    return path.with_name(f"{path.name}_mindspore") if path.is_dir() else path.parent


def _place(source: Path, given: Path, target: Path, *, beside: bool) -> Path:
    if given.is_dir():
        return target / source.relative_to(given)
    return target / (f"{source.stem}_mindspore.py" if beside else source.name)


def _signed(text: str, name: str) -> str:
    """With a first line that tells where it came from, and whether it was changed since."""
    return HEADER.format(name=name, digest=_digest(text)) + text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _refuse_to_destroy(place: Path) -> None:
    if not place.exists():
        return
    first, _, rest = place.read_text(encoding="utf-8", errors="replace").partition("\n")
    if not first.startswith(_SIGNED):
        raise MigrationError(sentences.OUT_EXISTS.of(path=str(place)))
    if f"({_digest(rest)})" not in first:
        raise MigrationError(sentences.CHANGED_BY_HAND.of(path=str(place)))


def _write(texts: dict[Path, str]) -> None:
    """All files or none: nothing has its name before everything is on the disk."""
    partial: list[tuple[Path, Path]] = []
    try:
        for place, text in texts.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            waiting = place.with_name(f"{place.name}.partial")
            partial.append((waiting, place))
            waiting.write_text(text, encoding="utf-8")
    except OSError as wrong:
        for waiting, _ in partial:
            waiting.unlink(missing_ok=True)
        raise MigrationError(sentences.NOT_WRITTEN.of(path=str(partial[-1][1]), why=str(wrong))) from wrong
    for waiting, place in partial:
        waiting.replace(place)


def _try(one: Outcome, function: str, data: str | None) -> None:
    """Import the file in a process of its own; with a batch, check it against its original."""
    if data is None:
        done = _run([sys.executable, "-c", _IMPORT, str(one.target)])
        one.importable, one.trouble = done.returncode == 0, _last_line(done.stderr) if done.returncode else ""
        return
    left, right = f"{one.ported.path}:{function}", f"{one.target}:{function}"
    done = _run(
        [
            *(sys.executable, "-m", "misstep", "migrate", "check", "--json", "--all"),
            *("--torch", left, "--mindspore", right, "--data", data),
        ]
    )
    try:
        said = json.loads(done.stdout)
    except ValueError:
        one.importable, one.same, one.trouble = False, False, _last_line(done.stderr)
        return
    one.importable, one.same, one.stages = True, bool(said["same"]), said["stages"]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    quiet = {**os.environ, "GLOG_v": "4"}
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=quiet)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", sentences.TOO_LONG.of(seconds=int(_PATIENCE)))


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].removeprefix("misstep: ") if lines else ""
