"""Kernels that leave some of their outputs unwritten: what lay in that memory is nobody's result."""

from __future__ import annotations

import mindspore as ms
import pytest
from mindspore import nn, ops
from tests.adapters.mindspore.trainings import watch


class Normalised(nn.Cell):
    def __init__(self, *, frozen: bool) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(3, 5), nn.Dense(5, 2)
        self.norm = nn.BatchNorm1d(5, use_batch_statistics=False if frozen else None)
        self.lstm = nn.LSTM(5, 5)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        dirty()
        x = self.norm(self.fc1(x))
        dirty()
        x, _ = self.lstm(x.reshape(1, 4, 5))
        return self.fc2(x[0])


def dirty() -> None:
    """Leave NaN behind in the memory that the next operator will be given."""
    bad = [ops.full((size,), float("nan"), dtype=ms.float32) for size in (1, 5, 20, 64, 1024) for _ in range(4)]
    for one in bad:
        one.asnumpy()


@pytest.mark.parametrize("frozen", [False, True])
def test_memory_that_a_kernel_never_wrote_is_no_output(frozen: bool) -> None:
    recording, _ = watch("functional", level="op", model_of=lambda fault: Normalised(frozen=frozen))
    seen = {str(row.address) for row in recording.rows}
    assert any("/BatchNorm:output@" in name for name in seen)
    assert any("/LSTM:output.2@" in name for name in seen)
    bad = [str(row.address) for row in recording.rows if not row.stats.finite]
    assert [name for name in bad if "/Fill" not in name and "/Full" not in name] == []
