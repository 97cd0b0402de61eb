"""One PyTorch file written anew for MindSpore.

>>> port_source(read_source("model.py"), load()).text
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from misstep.diagnosis.lint.source import Source
from misstep.migration.apimap.table import Table, Verdict
from misstep.migration.port.hazards import Hazard, hazards
from misstep.migration.port.loaders import edit_loaders
from misstep.migration.port.loop import edit_loops
from misstep.migration.port.spelling import Spelling, edit_imports, taken_names
from misstep.migration.port.structure import edit_classes, edit_names
from misstep.migration.scan.judge import Judged, judge
from misstep.migration.scan.page import Page
from misstep.migration.scan.reading import Called, Reading
from misstep.migration.scan.report import tensor_methods
from misstep.migration.scan.walk import read_calls
from misstep.migration.scan.writing import edit_call
from misstep.sentences import porting as sentences

MARK = "# misstep:"


@dataclass(frozen=True, slots=True)
class Written:
    """One call that was written anew, and on what that stands."""

    line: int
    name: str
    verdict: Verdict
    target: str
    executed: int
    """Samples on which both sides were executed and came out the same; 0 for what is no computation."""


@dataclass(frozen=True, slots=True)
class Left:
    """One call that is left to a human."""

    line: int
    last_line: int
    name: str
    why: str


@dataclass(slots=True)
class Ported:
    """A file, before it is written."""

    path: str
    text: str = ""
    calls: list[Written] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    hazards: list[Hazard] = field(default_factory=list)
    lines: int = 0
    """Lines with code."""

    @property
    def left_lines(self) -> int:
        return len({line for one in self.left for line in range(one.line, one.last_line + 1)})

    @property
    def done(self) -> float:
        """The share of lines that need no human."""
        return 1.0 - self.left_lines / self.lines if self.lines else 1.0

    @property
    def proven(self) -> float:
        """Of the calls written anew, the share whose counterpart was executed beside the original."""
        return sum(one.executed > 0 for one in self.calls) / len(self.calls) if self.calls else 1.0


def port_source(source: Source, table: Table) -> Ported:
    """The file in MindSpore's words; what is uncertain stays, marked with the reason."""
    return _Port(source, table).go()


class _Port:
    def __init__(self, source: Source, table: Table) -> None:
        self.source, self.table = source, table
        self.page = Page(source.text)
        self.reading: Reading = read_calls(source, tensor_methods(table, "mindspore"))
        self.spelling = Spelling(taken_names(source))
        self.found = Ported(source.path, lines=_code_lines(source))
        self.dropped: set[ast.stmt] = set()

    def go(self) -> Ported:
        shared = (self.source, self.reading, self.page, self.spelling, self.mark)
        handled = edit_loops(*shared) | edit_loaders(*shared)
        for called in self.reading.calls:
            if called.node not in handled:
                self.call(called)
        edit_names(self.source, self.reading, self.page, self.spelling, self.table, self.mark)
        edit_classes(self.source, self.reading, self.page)
        self.found.hazards = hazards(self.source, self.reading)
        body = self.page.written()  # asks every part what names it uses
        edit_imports(self.source, self.page, self.spelling, keep=f"{MARK}" in body)
        self.found.text = self.page.written()
        return self.found

    def call(self, called: Called) -> None:
        if called.group == "unknown":
            word = called.name.rpartition(".")[2]
            if called.receiver is not None and f"torch.Tensor.{word}" in self.table.entries:
                self.mark(called.node, word, "unknown_receiver", "")
            return
        if called.group != "framework" or not called.name.startswith("torch."):
            return
        judged = judge(called, self.table, self.reading)
        if judged.convention is not None and judged.convention.drop:
            self.drop(called)
        elif judged.way is None and (judged.convention is None or not judged.convention.template):
            if isinstance(called.node, ast.Call):
                self.mark(called.node, called.name, judged.reason, judged.detail)
        else:
            edit_call(judged, self.page, self.spelling)
            self.found.calls.append(self.written(judged))

    def written(self, judged: Judged) -> Written:
        executed = judged.way.passed if judged.way is not None else 0
        return Written(judged.called.node.lineno, judged.called.name, judged.verdict, judged.target, executed)

    def drop(self, called: Called) -> None:
        """A statement that says nothing in MindSpore; a block keeps at least one."""
        statement = self.source.parents.get(called.node)
        if not isinstance(statement, ast.Expr):
            self.mark(called.node, called.name, "outside_loop", "")
            return
        self.dropped.add(statement)
        owner = self.source.parents[statement]
        block = next(
            (part for name in ("body", "orelse", "finalbody") if statement in (part := getattr(owner, name, []))), []
        )
        start, end = self.page.span(statement)
        if all(one in self.dropped for one in block):
            self.page.change(start, end, "pass")
            return
        line = self.page.lines[statement.lineno - 1]
        whole = not self.page.data[line:start].strip() and self.page.data[end : end + 1] == b"\n"
        self.page.change(line if whole else start, end + 1 if whole else end, "")

    def mark(self, node: ast.AST, name: str, reason: str, detail: str) -> None:
        """Leave a call as it is, with the reason in the line above."""
        statement = node if isinstance(node, ast.stmt) else None
        for one in self.source.ancestors(node) if statement is None else ():
            if isinstance(one, ast.stmt):
                statement = one
                break
        assert statement is not None
        why = sentences.WHY[reason].of(name=name, detail=detail)
        assert isinstance(node, ast.expr | ast.stmt)
        self.spell_out(node, name)
        left = Left(node.lineno, node.end_lineno or node.lineno, name, why)
        if left in self.found.left:
            return
        self.found.left.append(left)
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
        line = self.page.lines[first - 1]
        text = f"{' ' * statement.col_offset}{MARK} {name}: {why}\n"
        self.page.change(line, line, text, rank=-(10**9), owner=(line, self.page.span(statement)[1]))

    def spell_out(self, node: ast.AST, name: str) -> None:
        """What stays PyTorch's is named in full: the short names are MindSpore's now."""
        function = node.func if isinstance(node, ast.Call) else node
        if isinstance(function, ast.Name | ast.Attribute) and self.source.dotted(function) == name:
            self.page.change(*self.page.span(function), name)


def _code_lines(source: Source) -> int:
    lines = source.text.splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)
