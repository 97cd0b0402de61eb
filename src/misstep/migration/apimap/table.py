"""The table of calls, read: what PyTorch's name is in MindSpore, and on what that stands."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from misstep.errors import MigrationError
from misstep.migration.apimap.rewrite import Rewrite
from misstep.migration.apimap.signatures import Signature, read

TABLE = Path(__file__).with_name("api_map.jsonl")
Verdict = Literal["equivalent", "differs", "none", "uncertain"]


@dataclass(frozen=True, slots=True)
class Known:
    """One way to say a call, as it was verified."""

    rewrite: Rewrite
    passed: int
    failed: int = 0
    rough: int = 0
    off: float = 0.0
    gradient: str = ""
    drawn: bool = False
    forms: dict[str, list[int]] = field(default_factory=dict)
    bad: dict[str, list[str]] = field(default_factory=dict)
    """Parameter → values and types with which no sample passed."""
    note: str = ""

    def takes(self, names: tuple[str, ...]) -> bool:
        """Whether a call with these parameters was seen to come out the same, as a whole or parameter by parameter."""
        form = " ".join(names)
        if form in self.forms:
            return self.forms[form][0] > 0
        return set(names) <= {name for key, (good, _) in self.forms.items() if good for name in key.split()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of PyTorch."""

    name: str
    verdict: Verdict
    signatures: tuple[Signature, ...] = ()
    ways: tuple[Known, ...] = ()
    possible: tuple[str, ...] = ()
    kind: str = "function"

    @property
    def verified(self) -> bool:
        return bool(self.ways)


@dataclass(frozen=True, slots=True)
class Table:
    """The whole map, with the versions it holds for."""

    versions: dict[str, str]
    entries: dict[str, Entry]


@functools.cache
def load(path: Path = TABLE) -> Table:
    """The table the package carries."""
    try:
        with path.open(encoding="utf-8") as lines:
            head = json.loads(next(lines))
            entries = [_entry(json.loads(line)) for line in lines]
    except (OSError, ValueError, StopIteration) as wrong:
        raise MigrationError(
            f"the map of calls {path} cannot be read: {wrong}; write it again with `make api-map`"
        ) from None
    return Table({key: head[key] for key in ("torch", "mindspore")}, {one.name: one for one in entries})


def _entry(line: dict[str, Any]) -> Entry:
    return Entry(
        line["name"],
        line["verdict"],
        read(line.get("signatures", ())),
        tuple(_known(one) for one in line.get("ways", ())),
        tuple(line.get("possible", ())),
        line.get("kind", "function"),
    )


def _known(line: dict[str, Any]) -> Known:
    rewrite = {key: line.pop(key) for key in Rewrite.__slots__ if key in line}
    line.pop("edges", None)
    return Known(Rewrite(**{"target": "", **rewrite}), **line)
