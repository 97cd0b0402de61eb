"""Networks written twice, built once for a whole test run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from twin_nets import HERE, Twins

from misstep.migration.sources import Built, build


@pytest.fixture
def twins() -> Twins:
    """The PyTorch and the MindSpore version of a network: twins("mlp")."""

    def built(name: str) -> tuple[Built, Built]:
        left = build(f"{HERE}/torch_{name}.py:build", "torch")
        return left, build(f"{HERE}/mindspore_{name}.py:build", "mindspore")

    return built


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str, str], str]:
    """Write a file with a `build` and name it: source("a", text)."""

    def write(name: str, text: str) -> str:
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        return f"{path}:build"

    return write
