"""A judged call as edits of its file: the name in front, keywords, values and additions, each where it stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import Formatter

from misstep.migration.apimap.rewrite import Rewrite
from misstep.migration.apimap.signatures import MISSING, Starred
from misstep.migration.scan.judge import Judged, literal_of
from misstep.migration.scan.page import Edit, Page, Span

_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.Tuple)
_DOTTED = re.compile(r"\b(?:mindspore|contextlib)(?:\.\w+)+")
Spell = Callable[[str], str]
"""A dotted name of MindSpore as this file says it."""


def edit_call(judged: Judged, page: Page, spell: Spell) -> None:
    """Lay the edits of one call over its page; nothing for a verdict without a way."""
    node = judged.called.node
    if judged.convention is not None:
        _by_template(judged, page, spell, judged.convention.template)
    elif judged.way is not None and judged.way.rewrite.template:
        _by_template(judged, page, spell, judged.way.rewrite.template)
    elif judged.way is not None and isinstance(node, ast.Attribute):
        end = page.span(node)[1]
        page.change(end - len(node.attr.encode()), end, judged.way.rewrite.target.rpartition(".")[2])
    elif judged.way is not None:
        _Arguments(judged, page, spell).edit()


def rewritten(judged: Judged, page: Page, spell: Spell) -> str:
    """What one call becomes, alone; the page is left without edits."""
    page.edits.clear()
    edit_call(judged, page, spell)
    text = page.written(*page.span(judged.called.node))
    page.edits.clear()
    return text


def _by_template(judged: Judged, page: Page, spell: Spell, template: str) -> None:
    node = judged.called.node
    start, end = page.span(node)
    edit = Edit(start, end, lambda: _filled(judged, page, spell, template))
    page.edits.append(edit)


def _filled(judged: Judged, page: Page, spell: Spell, template: str) -> str:
    node = judged.called.node
    args = node.args if isinstance(node, ast.Call) else []
    values: dict[str, str] = {}
    if judged.called.receiver is not None:
        values["self"] = values["input"] = page.written(*page.receiver(node))
    if isinstance(node, ast.Call):
        values["rest"] = page.written(*page.call_parens(node))
    for at, one in enumerate(args):
        values[str(at)] = page.of(one)
    for key, one in judged.given.items():
        if one is not judged.called.receiver:
            values[key] = _bare(one, page) if not isinstance(one, Starred) else _tuple(one, page)
    loose = {key for key, one in judged.given.items() if isinstance(one, ast.expr) and not isinstance(one, _ATOMS)} | (
        {"input", "self"} if isinstance(judged.called.receiver, ast.BinOp | ast.UnaryOp | ast.Compare) else set()
    )
    parts = []
    for before, name, _, _ in Formatter().parse(_DOTTED.sub(lambda found: spell(found[0]), template)):
        parts.append(before)
        if name is not None:
            text = values.get(name, "")
            wrapped = name in loose and not before.endswith(("(", ", ", "=")) and not _in_parens(text)
            parts.append(f"({text})" if wrapped else text)
    return "".join(parts)


def _in_parens(text: str) -> bool:
    return text.startswith("(") and text.endswith(")")


def _bare(node: ast.expr, page: Page) -> str:
    return page.of(node)


def _tuple(nodes: Starred, page: Page) -> str:
    inside = ", ".join(page.of(one) for one in nodes)
    return f"({inside},)" if len(nodes) == 1 and not isinstance(nodes[0], ast.Starred) else f"({inside})"


@dataclass(slots=True)
class _Place:
    """One argument: where it stands now, and what it becomes."""

    key: str
    node: ast.expr
    span: Span
    keyword: ast.keyword | None


class _Arguments:
    """The arguments of one call, moved over one by one."""

    def __init__(self, judged: Judged, page: Page, spell: Spell) -> None:
        assert judged.way is not None
        assert isinstance(judged.called.node, ast.Call)
        self.judged, self.page, self.spell = judged, page, spell
        self.node: ast.Call = judged.called.node
        self.rewrite: Rewrite = judged.way.rewrite
        self.inside = page.call_parens(self.node)
        self.whole = page.span(self.node)

    def edit(self) -> None:
        method = self.judged.called.receiver is not None
        if method and not self.rewrite.method:
            self._function_of_method()
        elif not method and self.rewrite.method:
            self.page.edits.append(Edit(*self.page.span(self.node), self._method_of_function))
            return
        else:
            self._callee()
        self._each()

    def _change(self, start: int, end: int, text: str, *, rank: int = 0) -> None:
        self.page.change(start, end, text, rank=rank, owner=self.whole)

    def _callee(self) -> None:
        start, end = self.page.span(self.node.func)
        if self.rewrite.method:
            assert isinstance(self.node.func, ast.Attribute)
            start = end - len(self.node.func.attr.encode())
            self._change(start, end, self.rewrite.target.rpartition(".")[2])
        else:
            self._change(start, end, self.spell(self.rewrite.target))

    def _function_of_method(self) -> None:
        """`x.softmax(dim=-1)` as `ops.softmax(x, axis=-1)`."""
        start, dot = self.page.receiver(self.node)
        self._change(start, start, f"{self.spell(self.rewrite.target)}(", rank=-self.page.span(self.node)[1])
        some = bool(self.node.args or self.node.keywords) or bool(self._additions())
        self._change(dot, self.inside[0], ", " if some else "")

    def _method_of_function(self) -> str:
        """`torch.foo(x, 1)` as `x.foo(1)`."""
        places = list(self._places())
        head = places[0]
        text = self.page.of(head.node)
        rest = [self._spelled(at, one) for at, one in enumerate(places[1:], start=1)]
        rest += [f"{key}={value}" for key, value in self._additions().items()]
        wrapped = text if isinstance(head.node, _ATOMS) else f"({text})"
        return f"{wrapped}.{self.rewrite.target.rpartition('.')[2]}({', '.join(one for one in rest if one)})"

    def _places(self) -> Iterator[_Place]:
        words = {id(one.value): one for one in self.node.keywords}
        for key, value in self.judged.given.items():
            if value is self.judged.called.receiver and key == "input":
                continue
            nodes = value if isinstance(value, Starred) else [value]
            for one in nodes:
                yield _Place(key, one, self.page.widened(self.page.span(one), self.inside), words.get(id(one)))

    def _spelled(self, at: int, place: _Place) -> str:
        if place.key in self.rewrite.absent:
            return ""
        text = self._value(place) or self.page.of(place.node)
        stays = place.keyword is None and at < len(self.rewrite.order) and self.rewrite.order[at] == place.key
        return text if stays or self._starred(place.key) else f"{self.rewrite.names.get(place.key, place.key)}={text}"

    def _starred(self, key: str) -> bool:
        return isinstance(self.judged.given.get(key), Starred)

    def _value(self, place: _Place) -> str:
        """What a turned value becomes; empty for one that stays."""
        turn = self.rewrite.turn.get(place.key)
        if turn is None:
            return ""
        value = literal_of(place.node)
        if value is not MISSING:
            made = eval(turn.format("v"), {"v": value})
            return repr(round(made, 12) if isinstance(made, float) else made)
        text = self.page.of(place.node)
        return turn.format(text if isinstance(place.node, _ATOMS) else f"({text})")

    def _each(self) -> None:
        self._silent()
        method = self.judged.called.receiver is not None
        at, in_order = (1 if method else 0), True
        last = self.inside[0]
        starred: list[_Place] = []
        for place in self._places():
            if place.key in self.rewrite.absent:
                self._remove(place)
                continue
            if self._starred(place.key):
                starred.append(place)
                last = max(last, place.span[1])
                continue
            name = self.rewrite.names.get(place.key, place.key)
            stays = in_order and at < len(self.rewrite.order) and self.rewrite.order[at] == place.key
            at += 1
            text = self._value(place)
            if text:
                self._change(*place.span, text)
            if place.keyword is not None:
                begin = self.page.span(place.keyword)[0]
                if name != place.key:
                    self._change(begin, begin + len(place.key.encode()), name)
                in_order = False
            elif not stays:
                in_order = False
                self._change(place.span[0], place.span[0], f"{name}=", rank=-len(self.page.data) - 1)
            last = max(last, place.span[1])
        if starred and not self.rewrite.star:
            self._change(starred[0].span[0], starred[0].span[0], "(")
            self._change(starred[-1].span[1], starred[-1].span[1], ",)" if len(starred) == 1 else ")")
        self._append(last)

    def _silent(self) -> None:
        """Keywords the other side has no word for and that say nothing: `inplace`, `device`."""
        known = {id(one.node) for one in self._places()}
        for one in self.node.keywords:
            if one.arg is not None and id(one.value) not in known and one.value is not self.judged.lead:
                place = _Place(one.arg, one.value, self.page.span(one), one)
                self._remove(place)

    def _remove(self, place: _Place) -> None:
        start, end = self.page.span(place.keyword) if place.keyword is not None else place.span
        after = self.page.data[end : self.inside[1]]
        before = self.page.data[self.inside[0] : start].rstrip()
        if before.endswith(b","):
            start = self.inside[0] + len(before) - 1
        elif after.lstrip().startswith(b","):
            rest = after.lstrip()[1:]
            end = self.inside[1] - len(rest.lstrip())
        self._change(start, end, "")

    def _additions(self) -> dict[str, str]:
        given = self.judged.given
        said = {self.rewrite.names.get(key, key) for key in given if key not in self.rewrite.absent}
        found: dict[str, str] = {}
        for key, expression in self.rewrite.fill.items():
            wanted = {name for _, name, _, _ in Formatter().parse(expression) if name}
            if key not in said and wanted <= given.keys():
                text = expression.format(**{name: self.page.of(given[name]) for name in wanted})
                found[key] = text
        for key, value in self.rewrite.add.items():
            if key not in said and key not in found:
                found[key] = repr(value)
        return found

    def _append(self, last: int) -> None:
        additions = ", ".join(f"{key}={value}" for key, value in self._additions().items())
        if not additions:
            return
        if self.judged.lead is not None:
            last = max(last, self.page.widened(self.page.span(self.judged.lead), self.inside)[1])
        method = self.judged.called.receiver is not None and not self.rewrite.method
        first = last == self.inside[0]
        self._change(last, last, additions if first or (method and first) else f", {additions}")
