"""Adapters that run steps again keep the contract of updates and capsules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.contract import test_fake, test_mindspore, test_mindspore_graph, test_pytorch
from tests.contract.fake_again import RepeatingFake
from tests.contract.graph_mode import AGAIN

from misstep.testing import Kind, Training
from misstep.testing.contract.replay import Keeping, ReplayContract


class TestFake(ReplayContract):
    adapter_name = "fake"

    @property
    def adapter(self) -> Any:
        return RepeatingFake()

    def make(self, kind: Kind) -> Training:
        return test_fake.TestFake().make(kind)


class TestPyTorch(ReplayContract):
    adapter_name = "pytorch"

    def make(self, kind: Kind) -> Training:
        return test_pytorch.TestPyTorch().make(kind)


class TestMindSpore(ReplayContract):
    adapter_name = "mindspore"

    def make(self, kind: Kind) -> Training:
        return test_mindspore.TestMindSpore().make(kind)


class TestMindSporeGraph(ReplayContract):
    adapter_name = "mindspore"

    def make(self, kind: Kind) -> Training:
        return test_mindspore_graph.TestMindSporeGraph().make(kind)

    def test_a_compiled_step_has_no_capsule_and_the_reason_says_what_to_run(self, tmp_path: Path) -> None:
        keeping = Keeping(tmp_path / "step.capsule", 1)
        self.train("mlp", keeping, steps=1)
        assert keeping.capsule is None
        assert "MISSTEP_PYNATIVE=1 misstep run" in keeping.refused


for fact in AGAIN:
    assert hasattr(ReplayContract, f"test_{fact}"), f"the contract has no fact {fact!r}"
    setattr(TestMindSporeGraph, f"test_{fact}", None)
