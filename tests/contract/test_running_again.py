"""Adapters that run steps again keep the contract of updates and capsules."""

from __future__ import annotations

from tests.contract import test_mindspore, test_pytorch
from tests.contract.adapter_contract import Kind, Training
from tests.contract.replay_contract import ReplayContract


class TestPyTorch(ReplayContract):
    adapter_name = "pytorch"

    def make(self, kind: Kind) -> Training:
        return test_pytorch.TestPyTorch().make(kind)


class TestMindSpore(ReplayContract):
    adapter_name = "mindspore"

    def make(self, kind: Kind) -> Training:
        return test_mindspore.TestMindSpore().make(kind)
