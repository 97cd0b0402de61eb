"""ARCHITECTURE.md tells the house as it is: every file and function of its walks exists, every room is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "misstep"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
HOP = re.compile(r"^\d+\. \[[^]]+\]\((?P<file>[^)]+)\): `(?P<name>[\w.]+)`", re.MULTILINE)
MOST_TO_DISK, MOST_TO_PIXEL, MOST_TO_VERDICT = 10, 16, 10


def walk(number: int) -> list[tuple[str, str]]:
    """(file, function) of every hop."""
    section = TEXT.partition(f"## Walk {number}")[2].partition("\n## ")[0]
    return [(hop["file"], hop["name"]) for hop in HOP.finditer(section)]


WALKS = {1: walk(1), 2: walk(2)}


def names_in(file: Path) -> set[str]:
    """Functions, classes and methods of a file, as `f`, `C` and `C.m`; names bound at the top level count too."""
    if file.suffix != ".py":
        text = file.read_text(encoding="utf-8")
        return set(re.findall(r"^(?:export )?(?:async )?(?:function|const|class) (\w+)", text, re.MULTILINE))
    names: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            names.update(f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        else:
            names.update(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
            names.update(alias.asname or alias.name for alias in ast.walk(node) if isinstance(alias, ast.alias))
    return names


@pytest.mark.parametrize(("file", "name"), [hop for hops in WALKS.values() for hop in hops])
def test_what_a_walk_names_is_there(file: str, name: str) -> None:
    assert (ROOT / file).exists(), f"ARCHITECTURE.md names {file}"
    assert name in names_in(ROOT / file), f"ARCHITECTURE.md names {name} in {file}"


def test_the_walks_are_short() -> None:
    to_disk = next(place for place, (_, name) in enumerate(WALKS[1]) if name == "AppendFile.append") + 1
    assert to_disk <= MOST_TO_DISK
    assert len({file for file, _ in WALKS[1]}) <= MOST_TO_PIXEL
    assert len({file for file, _ in WALKS[2]}) <= MOST_TO_VERDICT


@pytest.mark.parametrize("number", WALKS)
def test_each_hop_is_called_by_a_file_of_the_walk(number: int) -> None:
    """By one before it; or, where data is read, by the next. Private ones are hooks, called by the framework."""
    hops = WALKS[number]
    for place, (file, name) in enumerate(hops):
        function = name.rpartition(".")[2]
        if place == 0 or function.startswith("_") or place == len(hops) - 1:
            continue
        callers = [other for other, _ in (*hops[:place], hops[place + 1])]
        call = re.compile(rf"\b{function}(<\w+>)?\(")
        assert any(call.search((ROOT / caller).read_text(encoding="utf-8")) for caller in callers), f"{name} of {file}"


def test_every_package_has_a_row_among_the_rooms() -> None:
    table = TEXT.partition("## Rooms")[2]
    packages = [path.parent for path in PACKAGE.glob("*/__init__.py")]
    assert [path.name for path in packages if f"`{path.name}/`" not in table] == []


def test_every_room_in_the_table_is_there() -> None:
    table = TEXT.partition("## Rooms")[2].partition("\n\nA package")[0]
    first_column = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    rooms = [room for cell in first_column for room in re.findall(r"`([\w./]+)`", cell)]
    assert [room for room in rooms if not (PACKAGE / room).exists() and not (ROOT / room).exists()] == []
