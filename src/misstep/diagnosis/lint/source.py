"""A Python file as the rules of `misstep lint` read it: names resolved through imports, and values through assignments.

    source = read_source("train.py")
    source.dotted(call.func)         'torch.nn.functional.cross_entropy', whatever the file calls it
    source.value_of(node)            the expression a name was last assigned, followed through `self.` and other files
    source.network_of(node)          the class of a network, when this expression is one of the project's

Nothing is executed. What cannot be resolved is None, and a rule that meets None stays silent.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from misstep.errors import LintError
from misstep.sentences.advice import lint as sentences

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | Function
Loop = ast.For | ast.While | ast.AsyncFor

NETWORK_BASES = frozenset(
    {
        "torch.nn.Module",
        "torch.nn.Sequential",
        "mindspore.nn.Cell",
        "mindspore.nn.SequentialCell",
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.LightningModule",
    }
)
FORWARD = ("forward", "construct")
MOST_HOPS = 8
"""Assignments followed before a value counts as unknown: enough for real code, and an end for `a = b; b = a`."""
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages", "build", "missteps"})
_IGNORE = re.compile(r"#\s*misstep:\s*ignore(?:\[([\w\s,-]+)\])?")


@dataclass(frozen=True)
class NetworkClass:
    """A class that is a network: a subclass of torch's Module or MindSpore's Cell, perhaps through own classes."""

    node: ast.ClassDef
    source: Source

    @cached_property
    def methods(self) -> Mapping[str, Function]:
        return {item.name: item for item in self.node.body if isinstance(item, Function)}

    @cached_property
    def attributes(self) -> Mapping[str, ast.expr]:
        """What `__init__` (or any method, where that is silent) assigns to `self.NAME`; the last one counts."""
        found: dict[str, ast.expr] = {}
        ordered = sorted(self.methods.values(), key=lambda method: method.name == "__init__")
        for method in ordered:
            for statement in ast.walk(method):
                for target, value in assignments(statement):
                    if (name := self_attribute(target)) is not None:
                        found[name] = value
        return found

    @property
    def forward(self) -> Function | None:
        return next((self.methods[name] for name in FORWARD if name in self.methods), None)


@dataclass
class Source:
    """One file."""

    path: str
    text: str
    tree: ast.Module
    others: dict[str, Source | None] = field(default_factory=dict)
    """Files of the project read so far, shared by all of them; None where there is no such file."""
    _networks: dict[str, NetworkClass] | None = None

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for node in self.nodes:
            if isinstance(node, Function):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: parent for parent in self.nodes for child in ast.iter_child_nodes(parent)}

    @cached_property
    def imports(self) -> dict[str, str]:
        """The dotted name behind each name that an import brings in."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{module}.{alias.name}"
        return found

    @property
    def networks(self) -> dict[str, NetworkClass]:
        """The classes of this file that are networks, by name."""
        if self._networks is None:
            self._networks = {}  # files that import each other ask again while we are at it
            classes = {node.name: node for node in self.nodes if isinstance(node, ast.ClassDef)}
            self._networks = {
                name: NetworkClass(node, self) for name, node in classes.items() if self._is_network(node, classes, 0)
            }
        return self._networks

    @cached_property
    def ignored(self) -> dict[int, frozenset[str]]:
        """Rules switched off for a line by `# misstep: ignore[rule]`; an empty set means all."""
        found: dict[int, frozenset[str]] = {}
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            match = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
            if match:
                rules = frozenset(one.strip() for one in (match[1] or "").split(",") if one.strip())
                found[token.start[0]] = rules
        return found

    # ── where a node stands ──────────────────────────────────────────────────────────────────────────────────────────

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scope(self, node: ast.AST) -> Scope:
        return next((one for one in self.ancestors(node) if isinstance(one, Scope)), self.tree)

    def loops_around(self, node: ast.AST) -> list[Loop]:
        """The loops a node runs in, innermost first, inside its own function."""
        found: list[Loop] = []
        for one in self.ancestors(node):
            if isinstance(one, Scope):
                break
            if isinstance(one, Loop):
                found.append(one)
        return found

    def class_around(self, node: ast.AST) -> NetworkClass | None:
        owner = next((one for one in self.ancestors(node) if isinstance(one, ast.ClassDef)), None)
        return self.networks.get(owner.name) if owner is not None else None

    # ── what a name means ────────────────────────────────────────────────────────────────────────────────────────────

    def dotted(self, node: ast.AST) -> str:
        """The full dotted name of an expression, through imports and aliases; empty when it is no plain name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.imports.get(node.id, node.id), *reversed(parts)])

    def called(self, node: ast.AST | None) -> str:
        """The dotted name of what an expression calls; empty when it is no call of a plain name."""
        return self.dotted(node.func) if isinstance(node, ast.Call) else ""

    def value_of(self, node: ast.expr | None) -> ast.expr | None:
        """The expression behind a name: what it was last assigned before this use, in its own or an outer scope."""
        for _ in range(MOST_HOPS):
            found = self._assigned(node) if node is not None else None
            if found is None:
                return node
            node = found
        return node

    def network_of(self, node: ast.expr | None) -> NetworkClass | None:
        """The project's class of a network, when this expression is an instance of one."""
        value = unmoved(self.value_of(node))
        if isinstance(value, ast.Name) and value.id == "self":
            return self.class_around(value)
        if isinstance(value, ast.Call):
            if self.called(value) in ("torch.compile", "torch.nn.DataParallel") and value.args:
                return self.network_of(value.args[0])
            return self.find_network(self.called(value))
        return None

    def find_network(self, dotted: str) -> NetworkClass | None:
        """A network class by name: of this file, or of the file of the project that an import names."""
        if dotted in self.networks:
            return self.networks[dotted]
        module, _, name = dotted.rpartition(".")
        other = self.other_file(module) if module else None
        return other.networks.get(name) if other is not None else None

    def other_file(self, module: str) -> Source | None:
        """The project's file behind a module name: beside this one, or relative to it."""
        level = len(module) - len(module.lstrip("."))
        folder = Path(self.path).parent
        for _ in range(max(level - 1, 0)):
            folder = folder.parent
        base = folder.joinpath(*module.lstrip(".").split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            key = str(path)
            if key not in self.others:
                self.others[key] = _read_other(path, self.others)
            if (found := self.others[key]) is not None:
                return found
        return None

    def _is_network(self, node: ast.ClassDef, classes: Mapping[str, ast.ClassDef], depth: int) -> bool:
        for base in node.bases:
            name = self.dotted(base)
            if name in NETWORK_BASES or name.endswith((".nn.Module", ".nn.Cell")) or name == "nn.Module":
                return True
            if name in classes and depth < MOST_HOPS and self._is_network(classes[name], classes, depth + 1):
                return True
            if "." in name and self.find_network(name) is not None:
                return True
        return False

    def _assigned(self, node: ast.expr) -> ast.expr | None:
        attribute = self_attribute(node)
        if attribute is not None:
            owner = self.class_around(node)
            return owner.attributes.get(attribute) if owner is not None else None
        if not isinstance(node, ast.Name):
            return None
        scope: Scope | None = self.scope(node)
        before: int = node.lineno
        while scope is not None:
            known = [pair for pair in self._bindings(scope).get(node.id, ()) if pair[0] < before or scope is self.tree]
            if known:
                return known[-1][1]
            if isinstance(scope, Function) and node.id in parameters(scope):
                return self._only_binding(node.id)
            before = 10**9  # an outer scope may bind the name anywhere before the call
            scope = self.scope(scope) if scope is not self.tree else None
        return None

    def _only_binding(self, name: str) -> ast.expr | None:
        """What a parameter most likely is: the one object (network, loss …) that the file gives this name."""
        values = [value for bound in self._all_bindings.values() for _, value in bound.get(name, ())]
        made = self.called(unmoved(values[0])).rpartition(".")[2] if len(values) == 1 else ""
        return values[0] if made[:1].isupper() else None

    @cached_property
    def _all_bindings(self) -> dict[ast.AST, dict[str, list[tuple[int, ast.expr]]]]:
        found: dict[ast.AST, dict[str, list[tuple[int, ast.expr]]]] = {}
        for node in self.nodes:
            for target, value in assignments(node):
                if isinstance(target, ast.Name):
                    names = found.setdefault(self.scope(node), {})
                    names.setdefault(target.id, []).append((value.lineno, value))
        for names in found.values():
            for bound in names.values():
                bound.sort(key=lambda pair: pair[0])
        return found

    def _bindings(self, scope: Scope) -> dict[str, list[tuple[int, ast.expr]]]:
        return self._all_bindings.get(scope, {})


def read_source(path: str | Path, others: dict[str, Source | None] | None = None) -> Source:
    """A file, parsed; LintError when it cannot be read or is not Python."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise LintError(sentences.NO_FILE.of(path=str(path))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise LintError(sentences.UNREADABLE.of(path=str(path), why=str(error))) from error
    return parse_source(text, str(path), others)


def parse_source(text: str, path: str = "<text>", others: dict[str, Source | None] | None = None) -> Source:
    try:
        tree = ast.parse(text, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise LintError(sentences.NOT_PYTHON.of(path=path, line=line, why=getattr(error, "msg", str(error)))) from error
    return Source(path, text, tree, {} if others is None else others)


def python_files(paths: Iterable[str | Path]) -> Iterator[tuple[Path, bool]]:
    """The files named, and every .py file below folders; whether each was named."""
    for given in paths:
        path = Path(given)
        if not path.is_dir():
            yield path, True
            continue
        for found in sorted(path.rglob("*.py")):
            if not _SKIPPED & set(found.relative_to(path).parts):
                yield found, False


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of every plain binding that this statement makes."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                if len(target.elts) == len(node.value.elts):
                    yield from zip(target.elts, node.value.elts, strict=True)
            else:
                yield target, node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def self_attribute(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def parameters(function: Function) -> set[str]:
    every = function.args
    return {one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs)}


def keyword(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """An argument by keyword, or by position."""
    for one in call.keywords:
        if one.arg == name:
            return one.value
    return call.args[position] if position is not None and len(call.args) > position else None


def number(node: ast.expr | None) -> float | None:
    """The value of a literal number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    return None


def unmoved(node: ast.expr | None) -> ast.expr | None:
    """The object behind `Net().to(device).double()`."""
    while node is not None and method(node) in ("to", "cuda", "cpu", "double", "half", "float", "train", "eval"):
        assert isinstance(node, ast.Call)
        node = receiver(node)
    return node


def method(node: ast.AST) -> str:
    """The name of the method that a call calls: 'backward' of `loss.backward()`."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def receiver(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _read_other(path: Path, others: dict[str, Source | None]) -> Source | None:
    try:
        return read_source(path, others) if path.is_file() else None
    except (LintError, OSError):
        return None
