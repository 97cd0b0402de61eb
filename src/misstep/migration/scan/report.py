"""`misstep scan`: every call of a project, what it is in the other framework, and the totals.

>>> scan_paths(["model.py"], to="mindspore").totals
{'equivalent': 31, 'differs': 12, 'none': 0, 'uncertain': 1}
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from misstep.diagnosis.lint.source import Source, python_files, read_source
from misstep.errors import LintError, MigrationError
from misstep.migration.apimap.table import Table, Verdict, load
from misstep.migration.scan.backward import judge_back
from misstep.migration.scan.judge import Judged, judge
from misstep.migration.scan.page import Page
from misstep.migration.scan.reading import Called, Reading
from misstep.migration.scan.walk import read_calls
from misstep.migration.scan.writing import rewritten
from misstep.sentences import porting as sentences

To = Literal["mindspore", "torch"]
VERDICTS: tuple[Verdict, ...] = ("equivalent", "differs", "none", "uncertain")
_SHORT = {
    "mindspore.nn": "nn",
    "mindspore.ops": "ops",
    "mindspore.mint": "mint",
    "mindspore.experimental.optim": "optim",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One call of the framework."""

    path: str
    line: int
    column: int
    name: str
    verdict: Verdict
    becomes: str = ""
    """The call as it would be written there."""
    why: str = ""
    executed: int = 0
    """Samples on which both sides were executed and came out the same."""


@dataclass(slots=True)
class Scan:
    """What a project calls."""

    to: To
    rows: list[Row] = field(default_factory=list)
    files: int = 0
    lines: int = 0
    calls: int = 0
    unresolved: list[tuple[str, int, str]] = field(default_factory=list)
    """Calls nobody can say what they call: (path, line, text)."""
    unread: list[str] = field(default_factory=list)
    groups: Counter[str] = field(default_factory=Counter)

    @property
    def totals(self) -> dict[str, int]:
        counted = Counter(row.verdict for row in self.rows)
        return {verdict: counted[verdict] for verdict in VERDICTS}

    @property
    def resolved(self) -> float:
        """The share of all calls of which it is known what they call."""
        return 1.0 - len(self.unresolved) / self.calls if self.calls else 1.0


def scan_paths(paths: Iterable[str | Path], *, to: To = "mindspore") -> Scan:
    """Read files, and every .py file below folders. A file that is named must be readable; others are listed."""
    found = Scan(to)
    others: dict[str, Source | None] = {}
    table = load()
    given = list(paths)
    for path, named in python_files(given):
        try:
            source = read_source(path, others)
        except LintError as error:
            if named:
                raise
            found.unread.append(str(error))
            continue
        scan_source(source, found, table)
    if not found.files and not found.unread:
        raise MigrationError(sentences.NO_SOURCE.of(paths=[str(one) for one in given]))
    return found


def scan_source(source: Source, into: Scan, table: Table) -> None:
    """One file."""
    reading = read_calls(source, tensor_methods(table, into.to), "torch" if into.to == "mindspore" else "mindspore")
    page = Page(source.text)
    into.files += 1
    into.lines += source.text.count("\n") + 1
    for called in reading.calls:
        if isinstance(called.node, ast.Call):
            into.calls += 1
            into.groups[called.group] += 1
        if called.group == "unknown":
            into.unresolved.append((source.path, called.node.lineno, ast.unparse(called.node)[:80]))
        elif called.group == "framework" and (row := _row(source, page, called, reading, into.to, table)) is not None:
            into.rows.append(row)


def _row(source: Source, page: Page, called: Called, reading: Reading, to: To, table: Table) -> Row | None:
    home = "torch." if to == "mindspore" else "mindspore."
    if not called.name.startswith(home):
        return None
    judged = judge(called, table, reading) if to == "mindspore" else judge_back(called, table)
    if isinstance(called.node, ast.Attribute) and judged.way is None:
        return None  # an attribute of a tensor that is the same, or of the user's own
    becomes = judged.detail if to == "torch" else _becomes(judged, page)
    why = reason(judged)
    place = called.node
    executed = judged.way.passed if judged.way is not None else 0
    return Row(source.path, place.lineno, place.col_offset + 1, called.name, judged.verdict, becomes, why, executed)


def _becomes(judged: Judged, page: Page) -> str:
    if judged.way is None and (judged.convention is None or not judged.convention.template):
        return ""
    return rewritten(judged, page, short)


def reason(judged: Judged) -> str:
    """Why, as a sentence; empty when there is nothing to say."""
    if judged.reason not in sentences.WHY:
        return ""
    return sentences.WHY[judged.reason].of(name=judged.called.name, detail=judged.detail)


def short(dotted: str) -> str:
    """`mindspore.ops.cat` as people write it: `ops.cat`."""
    for home, alias in _SHORT.items():
        if dotted.startswith(f"{home}."):
            return f"{alias}{dotted.removeprefix(home)}"
    return dotted


def tensor_methods(table: Table, to: To) -> frozenset[str]:
    """The names of tensor methods of the framework a source is written for."""
    if to == "mindspore":
        return frozenset(name.rpartition(".")[2] for name in table.entries if name.startswith("torch.Tensor."))
    targets = (way.rewrite.target for entry in table.entries.values() for way in entry.ways)
    return frozenset(one.rpartition(".")[2] for one in targets if one.startswith("mindspore.Tensor."))


def by_file(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.path, []).append(row)
    return found
