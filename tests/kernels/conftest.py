"""Every test of the kernels runs on each engine: native with each instruction set this machine has, and numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from misstep.kernels import _numpy
from misstep.kernels._arrays import ArrayKernels

try:
    from misstep.kernels import _native
except ImportError:  # built without a compiler: the twin is all there is, and is tested
    ENGINES = ["numpy"]
else:
    ENGINES = [*_native.instruction_sets(), "numpy"]


class EngineUnderTest(ArrayKernels):
    """Array functions and memory functions of one engine under one name."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


@pytest.fixture(scope="module", params=ENGINES)
def kernels(request: pytest.FixtureRequest) -> Iterator[EngineUnderTest]:
    if request.param == "numpy":
        yield EngineUnderTest(_numpy)
        return
    before = _native.instruction_set()
    _native.use(request.param)
    yield EngineUnderTest(_native)
    _native.use(before)
