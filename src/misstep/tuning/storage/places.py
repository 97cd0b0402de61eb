"""Where studies are kept: a journal beside the runs unless a database is named.

missteps/studies/mlp.journal       the default: a file, for one machine or a shared disk
missteps/studies/mlp.json          where a study in a database is, so that its name is enough
sqlite:///…  postgresql://…  mysql://…  grpc://host:port
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from misstep.errors import StudyNotFound, nearest
from misstep.sentences import tune as sentences
from misstep.settings import Settings

FOLDER = "studies"
_URL = re.compile(r"(sqlite|postgresql|postgres|mysql|mariadb|grpc)(\+\w+)?://")


@dataclass(frozen=True, slots=True)
class Place:
    """A study: its storage, and its name there; an empty name is the only study of the storage."""

    storage: str
    study: str = ""
    note: str = field(default="", compare=False)
    """The file that remembers it, for one in a database."""

    @property
    def is_file(self) -> bool:
        return not is_url(self.storage)


def is_url(storage: str) -> bool:
    return _URL.match(storage) is not None


def folder_of(base: Path | str | None = None) -> Path:
    """The folder of studies beside the runs."""
    return Path(base if base is not None else Settings.load().dir) / FOLDER


def place_for(name: str, storage: str, base: Path | str | None = None) -> Place:
    """Where a study of this name is kept."""
    if not storage:
        return Place(str(folder_of(base) / f"{name}.journal"), name)
    return Place(storage, name, str(folder_of(base) / f"{name}.json") if is_url(storage) else "")


def remember(place: Place) -> None:
    """Leave a note of a study in a database, now that it was reached, so that its name finds it again."""
    if place.note:
        _note(Path(place.note), place.storage, place.study)


def is_known(place: Place) -> bool:
    """True when this storage was reached from here before."""
    try:
        return bool(place.note) and json.loads(Path(place.note).read_text(encoding="utf-8"))["storage"] == place.storage
    except (OSError, ValueError, KeyError, TypeError):
        return False


def find(wanted: str, base: Path | str | None = None) -> Place:
    """The study of a name, a file or a URL; `URL#name` when a storage holds several."""
    address, _, name = wanted.partition("#")
    if is_url(address):
        return Place(address, name)
    if Path(address).is_file() and not address.endswith((".yaml", ".yml", ".json")):
        return Place(address if not _is_sqlite(Path(address)) else f"sqlite:///{Path(address).absolute()}", name)
    known = all_places(base)
    if Path(address).suffix in (".yaml", ".yml"):
        if Path(address).is_file():
            return _of_file(address, base)
        address = Path(address).stem
    if address == "last" and known:
        return max(known.values(), key=_changed)
    if address in known:
        return known[address]
    folder = folder_of(base)
    if not known:
        raise StudyNotFound(sentences.NO_STUDIES.of(name=wanted, folder=folder))
    raise StudyNotFound(sentences.NO_STUDY.of(name=wanted, folder=folder, nearest=nearest(address, known)))


def _of_file(path: str, base: Path | str | None) -> Place:
    """The study of a study file, by the name it gives itself."""
    from misstep.tuning.studyfile import read_study

    study = read_study(path)
    known = all_places(base).get(study.name)
    if known is not None and not study.storage:
        return known
    place = place_for(study.name, study.storage, base)
    if place.is_file and not Path(place.storage).exists():
        raise StudyNotFound(sentences.NOT_BEGUN.of(file=path))
    return place


def all_places(base: Path | str | None = None) -> dict[str, Place]:
    """Every study beside the runs, by name."""
    found: dict[str, Place] = {}
    for path in sorted(folder_of(base).glob("*")):
        if path.suffix == ".journal":
            found[path.stem] = Place(str(path), path.stem)
        elif path.suffix == ".json":
            try:
                plain = json.loads(path.read_text(encoding="utf-8"))
                found[path.stem] = Place(str(plain["storage"]), str(plain["study"]))
            except (OSError, ValueError, KeyError, TypeError):
                continue
    return found


def shown(storage: str) -> str:
    """A storage without the password in its URL."""
    return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", storage)


def _note(path: Path, storage: str, name: str) -> None:
    """Readable by its owner alone: a URL may hold a password."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"storage": storage, "study": name}, file)
    except OSError:
        pass  # the study works all the same; only its name alone will not find it


def _is_sqlite(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _changed(place: Place) -> float:
    path = Path(place.storage) if place.is_file else folder_of() / f"{place.study}.json"
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
