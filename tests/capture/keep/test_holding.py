"""Tensors held until the step ends: within an account, without a copy unless somebody writes to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from misstep.capture.keep.holding import Holding, StepBefore
from misstep.capture.keep.ledger import Ledger


class Counted:
    """A tensor whose framework counts the writes to it."""

    def __init__(self, values: np.ndarray) -> None:
        self.data, self._version = values, 0

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def write(self, value: float) -> None:
        self.data[:] = value
        self._version += 1


def array(tensor: Any) -> Any:
    return tensor.data if isinstance(tensor, Counted) else tensor


def holding(limit: int = 1000) -> Holding:
    return Holding(array, Ledger(limit).account("held", share=1.0))


def test_a_held_tensor_is_the_users_own_memory():
    held, tensor = holding(), Counted(np.ones(10, np.float32))
    held.hold(1, tensor)
    assert held.values(1) is tensor.data
    assert held.account.bytes == 40


def test_what_does_not_fit_is_refused_and_counted():
    held = holding(limit=50)
    held.hold(1, Counted(np.ones(10, np.float32)))
    held.hold(2, Counted(np.ones(10, np.float32)))
    assert (1 in held, 2 in held, held.account.refused) == (True, False, 1)


def test_a_tensor_under_two_names_is_counted_once():
    held, tensor = holding(limit=50), Counted(np.ones(10, np.float32))
    held.hold(1, tensor)
    held.hold(2, tensor)
    assert (2 in held, held.account.bytes) == (True, 40)


def test_one_that_was_written_over_is_refused_and_copied_from_the_next_step_on():
    held, tensor = holding(), Counted(np.ones(10, np.float32))
    held.hold(1, tensor)
    tensor.write(5.0)
    assert held.values(1) is None
    held.learn()
    held.let_go()
    assert held.account.bytes == 0
    held.hold(1, tensor)
    tensor.write(7.0)
    values = held.values(1)
    assert values is not None
    assert values.tolist() == [5.0] * 10


def test_a_frozen_value_survives_a_write():
    held, tensor = holding(), Counted(np.ones(10, np.float32))
    held.hold(1, tensor)
    frozen = held.freeze(1)
    tensor.write(5.0)
    assert frozen is not None
    assert frozen.tolist() == [1.0] * 10
    assert held.values(1) is frozen


def test_the_step_before_takes_over_what_was_held_and_counts_it_once():
    ledger = Ledger(50)
    held = Holding(array, ledger.account("held", share=1.0))
    before = StepBefore(array, ledger.account("before", share=1.0))
    held.hold(1, Counted(np.ones(10, np.float32)))
    before.take(7, held)
    assert (before.step, list(before), ledger.held()) == (7, [1], {"before": 40})
    before.let_go()
    assert ledger.bytes == 0
