"""A folder of .npy, .npz, .safetensors or .pt files as a source: the name of a file is the name of its tensor.

Names are read in the styles people use, tried in this order:

    encoder.0.fc:output.1@7.npy          our own export (a `:` that a file system refuses is written `%3A`)
    0_fc1_weight_float32_12.npy          troubleshooter: [index]_name_[suffix]_[dtype]_[id]
    encoder.0.fc.output.0.npy            name, role, slot
    anything.npy                         a name

Without an index the execution order is what `index.json` says, then the numbers troubleshooter counts, then the time
of writing, then the alphabet with numbers in numeric order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from numpy.typing import NDArray

from misstep.core.address import ROLE_CODES, Role
from misstep.errors import FormatError, TensorUnavailable
from misstep.store.boundary import json_file, reading
from misstep.store.checkpoint import Checkpoint, read_checkpoint
from misstep.store.foreign.elements import dtype_named, name_of
from misstep.store.foreign.index import entry_of
from misstep.store.foreign.npyfile import peek_npy, read_npy
from misstep.store.foreign.source import Entry, address_in, guess_role

INDEX = "index.json"
SUFFIXES = (".npy", ".npz", ".safetensors", ".pt", ".pth", ".ckpt")

_TROUBLESHOOTER = re.compile(
    r"(?:(?P<index>\d+)_)?(?P<name>.+?)(?:_(?P<suffix>backward|grad|in|out|input|output))?"
    r"_(?P<dtype>bool|u?int\d+|float\d+|bfloat16|complex\d+)_(?P<id>\d+)",
    re.IGNORECASE,
)
_TROUBLESHOOTER_ROLES: dict[str, Role] = {
    "backward": "grad_output",
    "grad": "grad_output",
    "in": "input",
    "input": "input",
    "out": "output",
    "output": "output",
}
_ROLE_AND_SLOT = re.compile(
    r"(?P<name>.+?)[._](?P<role>input|output|grad_input|grad_output|param|grad|buffer)(?:[._](?P<slot>\d+))?"
)


@dataclass(frozen=True, slots=True)
class Named:
    """What a file name says."""

    name: str
    role: Role
    slot: int = 0
    step: int | None = None
    call: int = 1
    dtype: str = ""
    order: int | None = None


def looks_like_folder(path: Path) -> bool:
    return path.is_dir() and bool(_files(path))


def open_folder(path: str | Path) -> Folder:
    """Every array file below a folder.

    >>> open_folder("arrays").entries()[0].name
    """
    where = Path(path)
    found = Folder(where)
    if not found.entries():
        raise FormatError(f"{where} holds no .npy, .npz, .safetensors, .pt or .ckpt file", path=str(where))
    return found


class Folder:
    """The arrays of a folder, opened when asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._load: dict[str, Callable[[], NDArray[Any]]] = {}
        self._entries = self._scan()

    @property
    def label(self) -> str:
        return str(self.path)

    def entries(self) -> list[Entry]:
        return self._entries

    def array(self, entry: Entry) -> NDArray[Any]:
        load = self._load.get(entry.key)
        if load is None:
            raise TensorUnavailable(f"{self.path} holds no {entry}", address=str(entry))
        return load()

    def _scan(self) -> list[Entry]:
        said = _index(self.path)
        raw: list[tuple[tuple[Any, ...], Entry]] = []
        # Plain strings: a Path object per file would be half the time of opening a large dump.
        root = os.path.join(self.path, "")
        for file in _files(self.path):
            key = file[len(root) :]
            if file.endswith(".npy"):
                raw.append(self._single(file, key, said.get(key)))
            else:
                raw += self._several(Path(file), key)
        raw.sort(key=lambda item: item[0])
        return [replace(entry, order=at) if entry.order != at else entry for at, (_, entry) in enumerate(raw)]

    def _single(self, file: str, key: str, listed: dict[str, Any] | None) -> tuple[tuple[Any, ...], Entry]:
        if listed is not None and "shape" in listed:
            with reading(self.path / INDEX, f"index of arrays, {key[:80]}"):
                entry = entry_of(listed, key=key)
            self._load[key] = partial(read_npy, file, dtype=entry.dtype)
            return (0, entry.order, ()), entry
        shape, held = peek_npy(file)
        named = read_name(unquote(key.removesuffix(".npy")))
        dtype = (named.dtype if dtype_named(named.dtype) is not None else "") or name_of(held)
        self._load[key] = partial(read_npy, file, dtype=dtype)
        entry = Entry(
            name=named.name,
            role=named.role,
            slot=named.slot,
            shape=shape,
            dtype=dtype,
            step=named.step,
            call=named.call,
            key=key,
        )
        return _sorting(named.order, key), entry

    def _several(self, file: Path, key: str) -> list[tuple[tuple[Any, ...], Entry]]:
        """A file with several tensors: one alone takes the file's name, more carry it as a scope."""
        checkpoint = read_checkpoint(file)
        stem = unquote(key[: -len(file.suffix)])
        found = []
        for number, held in enumerate(checkpoint.tensors.values()):
            alone = len(checkpoint) == 1
            named = read_name(stem if alone else held.name)
            place = f"{key}//{held.name}"
            self._load[place] = _from_checkpoint(checkpoint, held.name)
            entry = Entry(
                name=named.name if alone else f"{stem}/{named.name}" if _many_files(self.path) else named.name,
                role=named.role,
                slot=named.slot,
                shape=held.shape,
                dtype=held.dtype,
                step=named.step,
                call=named.call,
                key=place,
            )
            found.append(((*_sorting(named.order if alone else None, key), number), entry))
        return found


def read_name(stem: str) -> Named:
    """What the name of a file tells about its tensor.

    >>> read_name("3_fc1_grad_float32_7")
    Named(name='fc1', role='grad_output', slot=0, step=None, call=1, dtype='float32', order=7)
    """
    address = address_in(stem)
    if address is not None:
        return Named(address.node, address.role, address.slot, address.step, address.call)
    ours = _TROUBLESHOOTER.fullmatch(stem)
    if ours:
        role = _TROUBLESHOOTER_ROLES.get((ours["suffix"] or "").lower()) or guess_role(ours["name"])
        return Named(ours["name"], role, int(ours["index"] or 0), dtype=ours["dtype"].lower(), order=int(ours["id"]))
    plain = _ROLE_AND_SLOT.fullmatch(stem)
    if plain and plain["role"] in ROLE_CODES:
        return Named(plain["name"], plain["role"], int(plain["slot"] or 0))  # type: ignore[arg-type]
    return Named(stem, guess_role(stem))


def _from_checkpoint(checkpoint: Checkpoint, name: str) -> Callable[[], NDArray[Any]]:
    return lambda: checkpoint[name]


def _sorting(order: int | None, key: str) -> tuple[Any, ...]:
    if order is not None:
        return (0, order, ())
    return (1, 0, _natural(key))


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part)


def _files(path: Path) -> list[str]:
    found = []
    for folder, inner, names in os.walk(path):
        inner.sort()
        found += [os.path.join(folder, name) for name in names if name.endswith(SUFFIXES)]
    return found


def _many_files(path: Path) -> bool:
    return len(_files(path)) > 1


def _index(path: Path) -> dict[str, dict[str, Any]]:
    where = path / INDEX
    if not where.is_file():
        return {}
    files = json_file(where, "index of arrays; delete it to go by file names").get("files", {})
    return {key: facts for key, facts in files.items() if isinstance(facts, dict)} if isinstance(files, dict) else {}
