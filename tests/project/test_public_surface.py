"""The names a user may rely on: all there, sorted, and none that leaked."""

from __future__ import annotations

import tomllib
import types
from pathlib import Path

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
