r"""The map file: which tensor of one side is which of the other, where names and order do not tell.

Written by `misstep diff --write-map`, edited by hand, read back. TOML, or JSON with the same keys:

    [names]                                   # left = right; a module's name brings everything below it
    "layer1.0.bn1" = "stage1.block0.norm"
    "encoder.*"    = "enc.*"                  # a * on both sides keeps what it stands for

    [rules]                                   # regular expressions on left names, tried in this order
    '^decoder\.(\d+)\.' = 'dec.layer\1.'

    [layouts]                                 # how the right array must be turned to lie like the left one
    "fc*.weight" = "transpose"                # or an order of axes: "0 2 3 1"; or "reshape"

    [ignore]
    left  = ["*.num_batches_tracked"]
    right = []
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from misstep.errors import CompareError, nearest
from misstep.store.atomic import write_text

_SECTIONS = ("names", "rules", "layouts", "ignore")


@dataclass(frozen=True, slots=True)
class NameMap:
    """Names, rules, layouts and what to leave out, as the user wrote them."""

    names: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)
    ignore_left: tuple[str, ...] = ()
    ignore_right: tuple[str, ...] = ()

    def right_name(self, left: str) -> str | None:
        """What the left name is called on the right; None where the map is silent.

        >>> NameMap(names={"encoder.*": "enc.*"}).right_name("encoder.0.fc")
        'enc.0.fc'
        """
        exact = self.names.get(left)
        if exact is not None:
            return exact
        for known, wanted in self.names.items():
            if "*" in known:
                found = re.fullmatch(re.escape(known).replace(r"\*", "(.*)"), left)
                if found:
                    for part in found.groups():
                        wanted = wanted.replace("*", part, 1)
                    return wanted
            elif left.startswith((known + ".", known + "/")):
                return wanted + left[len(known) :]
        for pattern, replacement in self.rules.items():
            changed, times = re.subn(pattern, replacement, left)
            if times:
                return changed
        return None

    def layout(self, left: str) -> str:
        return next((how for pattern, how in self.layouts.items() if fnmatchcase(left, pattern)), "")

    def ignores(self, name: str, *, side: str) -> bool:
        patterns = self.ignore_left if side == "left" else self.ignore_right
        return any(fnmatchcase(name, pattern) for pattern in patterns)


def read_map(path: str | Path) -> NameMap:
    """A map file as the user left it."""
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CompareError(f"no such map file: {where}; write one to start from with --write-map {where}") from None
    return parse_map(text, where=str(where), json_file=where.suffix == ".json")


def parse_map(text: str, *, where: str = "the map", json_file: bool | None = None) -> NameMap:
    """The text of a map file; what begins with a brace is JSON unless told."""
    as_json = text.lstrip().startswith("{") if json_file is None else json_file
    try:
        said: Any = json.loads(text) if as_json else tomllib.loads(text)
    except ValueError as wrong:
        raise CompareError(f"{where} cannot be read: {wrong}") from None
    if not isinstance(said, dict):
        raise CompareError(f"{where} holds no sections; it begins with [names]")
    return map_of(said, where=where)


def map_of(said: Mapping[str, Any], *, where: str = "the map") -> NameMap:
    """A map given as a dictionary: either the sections, or simply left name → right name."""
    if said and not any(key in _SECTIONS for key in said) and all(isinstance(value, str) for value in said.values()):
        return NameMap(names=dict(said))
    for key in said:
        if key not in _SECTIONS:
            raise CompareError(f"{where} has an unknown section {key!r}{nearest(key, _SECTIONS)}")
    for pattern in said.get("rules", {}):
        try:
            re.compile(pattern)
        except re.error as wrong:
            raise CompareError(f"{where}: the rule {pattern!r} is no regular expression: {wrong}") from None
    ignore = said.get("ignore", {})
    return NameMap(
        names=dict(said.get("names", {})),
        rules=dict(said.get("rules", {})),
        layouts=dict(said.get("layouts", {})),
        ignore_left=tuple(ignore.get("left", ())),
        ignore_right=tuple(ignore.get("right", ())),
    )


def write_map(
    path: str | Path, pairs: Iterable[tuple[str, str]], *, only_left: Iterable[str] = (), only_right: Iterable[str] = ()
) -> None:
    """The pairs found so far, as a file to edit; what found no partner stands below as comments."""
    where = Path(path)
    if where.suffix == ".json":
        text = json.dumps({"names": dict(pairs)}, indent=2, ensure_ascii=False) + "\n"
    else:
        text = map_text(pairs, only_left=only_left, only_right=only_right)
    write_text(where, text)


def map_text(pairs: Iterable[tuple[str, str]], *, only_left: Iterable[str] = (), only_right: Iterable[str] = ()) -> str:
    """The same as TOML text."""
    names = dict(pairs)
    lines = ["[names]", *(f"{json.dumps(left)} = {json.dumps(right)}" for left, right in names.items())]
    for side, left_over in (("left", only_left), ("right", only_right)):
        found = list(dict.fromkeys(left_over))
        if found:
            lines += ["", f"# only on the {side}:", *(f"# {json.dumps(name)}" for name in found)]
    return "\n".join(lines) + "\n"
