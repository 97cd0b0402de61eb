"""The arrows of ARCHITECTURE: a package imports what stands below it, never what stands above."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import misstep

PACKAGE = Path(misstep.__file__).parent
MODULE = re.compile(r"misstep(\.\w+)+(\.|:\w+)?")

ARROWS: dict[str, set[str]] = {
    "__main__": {"cli"},
    "cli": {"client", "hub", "compare", "diagnosis", "capture", "migration", "tuning", "performance"},
    "migration": {"compare", "adapters", "diagnosis"},
    "hub": {"compare", "diagnosis", "store", "control", "tuning", "performance"},
    "performance": {"capture"},
    "tuning": {"capture", "diagnosis"},
    "train": {"capture"},
    "client": {"hubaccess", "store"},
    "hubaccess": {"store"},
    "compare": {"store"},
    "diagnosis": {"store"},
    "capture": {"adapters", "store", "control"},
    "control": {"protocol"},
    "testing": {"capture"},
    "adapters": {"store"},
    "store": {"protocol"},
    "protocol": {"kernels"},
    "kernels": {"core"},
    "core": {"sentences"},
    "sentences": set(),
}
ENTRANCE = "__init__.py"
"""Of the package itself: the public names, each looked up in its home when first used; it may reach everything."""
FOR_EVERYBODY = {"errors", "settings", "sentences"}
FRAMEWORKS = {
    "torch": ("adapters/pytorch/*", "*/torch.py", "train/bridges/keras.py", "migration/*/torch_*.py"),
    "mindspore": ("adapters/mindspore/*", "*/mindspore.py", "migration/*/mindspore_*.py"),
}
"""Who may import a framework: its adapter, and files named after it: the halves of `train` and `migration`."""
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
    tree = ast.parse(path.read_text(encoding="utf-8"))
    by_name = any(isinstance(node, ast.alias) and "import" in node.name for node in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (above, node.module or "") if part)
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif by_name and isinstance(node, ast.Constant) and _names_a_module(node.value):
            yield node.lineno, node.value  # import_module("misstep.train.logs"), or a table of such names


def _names_a_module(value: object) -> bool:
    """Whether a string is the name of one of our modules, or the beginning of one (f"misstep.train.steps.{name}")."""
    if not isinstance(value, str) or not MODULE.fullmatch(value):
        return False
    place = PACKAGE.joinpath(*value.partition(":")[0].rstrip(".").split(".")[1:])
    return place.is_dir() or place.with_suffix(".py").exists()


def home_of(path: Path) -> str:
    """The package, or the root file, an import stands in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def subpackage(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "misstep" and len(parts) > 1 and parts[1] in ARROWS else None


def test_every_package_has_a_place_in_the_picture() -> None:
    places = {home_of(path) for path in FILES if path != PACKAGE / ENTRANCE}
    assert places <= set(ARROWS) | FOR_EVERYBODY


def test_no_arrow_points_up() -> None:
    wrong = []
    for path in FILES:
        home = home_of(path)
        if path == PACKAGE / ENTRANCE or home not in ARROWS:  # errors and settings have a test of their own
            continue
        for line, module in imports_of(path):
            target = subpackage(module)
            if target is not None and target != home and target not in below(home):
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {module}")
    assert wrong == []


def test_errors_and_settings_import_nothing_of_misstep_but_each_other_and_sentences() -> None:
    for name in FOR_EVERYBODY - {"sentences"}:
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
