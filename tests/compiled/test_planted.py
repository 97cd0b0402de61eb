"""A few of the planted faults in every run of the tests; `make compiled-sweep` plays them all."""

from __future__ import annotations

import pytest
from tests.compiled.sweep import Story, play

pytestmark = pytest.mark.story

CHOSEN = [
    ("hidden", "model", "inductor", "op"),
    ("loss", "net.compile", "aot_eager", "guard"),
    ("first", "submodule", "aot_eager", "op"),
    ("backward", "function", "aot_eager", "module"),
    ("optimizer", "function", "aot_eager", "op"),
]


@pytest.mark.parametrize(("fault", "form", "backend", "level"), CHOSEN)
def test_a_fault_inside_compiled_code_is_named_and_training_stays_as_it_was(
    fault: str, form: str, backend: str, level: str
) -> None:
    assert play(Story(fault, form, backend), (level,)).problems == {level: []}
