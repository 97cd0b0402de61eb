"""What every adapter must do, as facts. A new adapter inherits `AdapterContract` and is done when it is green.

from misstep.testing import AdapterContract

class TestMine(AdapterContract):
    adapter_name = "mine"
    log_operator = "log"
    source_file = "test_mine.py"
    def make(self, kind): ...
    def footprint(self, training): ...
"""

import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{part}" for part in ("rows", "faults", "manners", "replay", "recording", "reference"))
)

from misstep.testing.contract.faults import FaultFacts  # noqa: E402
from misstep.testing.contract.harness import Kind, Training  # noqa: E402
from misstep.testing.contract.manners import MannerFacts  # noqa: E402
from misstep.testing.contract.rows import RowFacts  # noqa: E402


class AdapterContract(RowFacts, FaultFacts, MannerFacts):
    """Every fact of the contract."""


__all__ = ["AdapterContract", "Kind", "Training"]
