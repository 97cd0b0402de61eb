"""The names a user may rely on: all there, sorted, none that leaked, and among them every name the documents teach."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import misstep
from misstep import __all__ as public

SUBPACKAGES = {folder.name for folder in Path(misstep.__file__).parent.iterdir() if folder.is_dir()}


def test_the_public_names_are_sorted_and_named_once() -> None:
    assert public == sorted(set(public))


def test_every_public_name_can_be_used() -> None:
    for name in public:
        assert not isinstance(getattr(misstep, name), types.ModuleType), name


def test_dir_tells_the_public_names() -> None:
    assert dir(misstep) == public


def test_a_public_name_is_never_the_name_of_a_subpackage() -> None:
    """Importing the subpackage would replace the function by the module."""
    assert not SUBPACKAGES & set(public)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(misstep, "atach")


def test_the_version_is_the_projects() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert misstep.__version__ == tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]


ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *ROOT.glob("docs/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def programs(page: Path) -> list[ast.Module]:
    text = page.read_text(encoding="utf-8")
    snippets = [text] if page.suffix == ".py" else [textwrap.dedent(block) for _, block in BLOCK.findall(text)]
    return [ast.parse(snippet) for snippet in snippets]


def taught(program: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name) for every name of misstep that a program uses: imported, or read from the imported package."""
    for node in ast.walk(program):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "misstep":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "misstep":
            yield "misstep", node.attr


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: page.name)
def test_every_name_a_page_teaches_is_public(page: Path) -> None:
    for program in programs(page):
        for module, name in taught(program):
            found = importlib.import_module(module)
            assert hasattr(found, name), f"{module}.{name} does not exist"
            assert name in public_in(found), f"{module}.{name} is not public"


def public_in(module: types.ModuleType) -> set[str]:
    """What `__all__` lists; in a module without one, every name but those with an underscore."""
    return set(getattr(module, "__all__", (name for name in vars(module) if not name.startswith("_"))))


def test_the_pages_teach_something() -> None:
    found = {name for page in PAGES for program in programs(page) for _, name in taught(program)}
    assert {"attach", "Model"} <= found
