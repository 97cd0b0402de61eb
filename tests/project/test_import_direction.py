"""The arrows of ARCHITECTURE: a package imports what stands below it, never what stands above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import misstep

PACKAGE = Path(misstep.__file__).parent

ARROWS: dict[str, set[str]] = {
    "cli": {"hub", "compare", "diagnosis", "capture"},
    "hub": {"compare", "diagnosis", "store"},
    "train": {"capture"},
    "compare": {"store"},
    "diagnosis": {"store"},
    "capture": {"adapters", "store"},
    "adapters": {"core", "kernels"},
    "store": {"kernels"},
    "kernels": {"core"},
    "core": set(),
}
FOR_EVERYBODY = {"errors", "settings"}
FRAMEWORKS = {
    "torch": ("adapters/pytorch/*", "train/*_torch.py", "train/bridges/keras.py"),
    "mindspore": ("adapters/mindspore/*", "train/*_mindspore.py", "train/bridges/mindspore.py"),
}
"""Who may import a framework: its adapter, and the modules of `train` that subclass its classes: named after it, or
a bridge."""
FILES = sorted(PACKAGE.rglob("*.py"))


def below(package: str) -> set[str]:
    """Everything a package may import: what its arrows reach, directly or through others."""
    reached: set[str] = set()
    waiting = [package]
    while waiting:
        for lower in ARROWS[waiting.pop()] - reached:
            reached.add(lower)
            waiting.append(lower)
    return reached


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import in a file, inside functions too."""
    package = ["misstep", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (above, node.module or "") if part)
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def subpackage(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "misstep" and len(parts) > 1 and parts[1] in ARROWS else None


def test_every_package_has_a_place_in_the_picture() -> None:
    folders = {path.relative_to(PACKAGE).parts[0] for path in FILES if path.parent != PACKAGE}
    assert folders <= set(ARROWS)


def test_no_arrow_points_up() -> None:
    wrong = []
    for path in FILES:
        if path.parent == PACKAGE:
            continue  # the public names and `python -m misstep` may reach everything
        home = path.relative_to(PACKAGE).parts[0]
        for line, module in imports_of(path):
            target = subpackage(module)
            if target is not None and target != home and target not in below(home):
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {module}")
    assert wrong == []


def test_errors_and_settings_import_nothing_of_misstep_but_each_other() -> None:
    for name in FOR_EVERYBODY:
        modules = [module for _, module in imports_of(PACKAGE / f"{name}.py") if module.startswith("misstep.")]
        assert {module.split(".")[1] for module in modules} <= FOR_EVERYBODY


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_only_its_adapter_imports_a_framework(framework: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {module}"
        for path in FILES
        if not any(fnmatch(path.relative_to(PACKAGE).as_posix(), allowed) for allowed in FRAMEWORKS[framework])
        for line, module in imports_of(path)
        if module.split(".")[0] == framework
    ]
    assert wrong == []
