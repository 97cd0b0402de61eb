"""What begins with an underscore belongs to its module: nothing else imports it or reaches for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import misstep

PACKAGE = Path(misstep.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}

OF_FRAMEWORKS = {"_base", "_buffers", "_maybe_opt_step", "_modules", "_parameters", "_schema", "_values", "_version"}
"""Attributes of torch and MindSpore that adapters have to read; some of our own names are spelt alike."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined_in(tree: ast.Module) -> set[str]:
    """Every private name a module gives to something: functions, classes, variables, attributes, fields."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            names.add(node.attr)
    return {name for name in names if is_private(name)}


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


DEFINED = {path: defined_in(tree) for path, tree in TREES.items()}
OURS = set().union(*DEFINED.values())
"""`sys._getframe` is another project's business."""


def reached_for(path: Path) -> Iterator[str]:
    here = path.relative_to(PACKAGE).as_posix()
    foreign = OF_FRAMEWORKS if here.startswith(("adapters/", "train/", "migration/")) else set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not _is_own(node.value):
            ours = OURS - DEFINED[path] - foreign
            if node.attr in ours and not ast.unparse(node.value).startswith("super("):
                yield f"{here}:{node.lineno} {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("misstep"):
            module = str(node.module).split(".")[1:]
            for alias in node.names:
                same_package = (
                    list(path.relative_to(PACKAGE).parts[:-1]) == module and PACKAGE.joinpath(*module).is_dir()
                )
                if is_private(alias.name) and not same_package:
                    yield f"{here}:{node.lineno} from {node.module} import {alias.name}"


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_private_names_stay_in_their_module(path: Path) -> None:
    assert list(reached_for(path)) == []
