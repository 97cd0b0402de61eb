"""The MindSpore adapter in graph mode keeps what of the contract can be seen from outside of compiled code."""

from __future__ import annotations

import mindspore as ms
from tests.contract import test_mindspore
from tests.contract.graph_mode import ELSEWHERE

from misstep.testing import AdapterContract


class TestMindSporeGraph(test_mindspore.TestMindSpore):
    mode = ms.GRAPH_MODE

    def sees(self, address: str) -> bool:
        return address.partition(":")[2] in ("loss", "grad", "param")


for fact in ELSEWHERE:
    assert hasattr(AdapterContract, f"test_{fact}"), f"the contract has no fact {fact!r}"
    setattr(TestMindSporeGraph, f"test_{fact}", None)
