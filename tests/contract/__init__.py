"""One contract, run over every adapter."""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.adapter_contract", "tests.contract.recording", "tests.contract.reference"
)
