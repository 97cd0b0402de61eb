"""What a step needs: the naive sum, the live peak, the actual peak, and who holds memory then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from misstep.errors import TrainError
from misstep.train import measure_memory, set_memory_reuse
from misstep.train.memory import MemoryReport

MB = 1 << 20
FLOATS = MB // 4


def test_memory_that_was_freed_counts_in_the_naive_sum_only() -> None:
    def step() -> None:
        first = torch.zeros(FLOATS)
        del first
        second = torch.zeros(FLOATS)
        del second

    report = measure_memory(step)
    assert report.naive_bytes - report.standing_bytes == 2 * MB
    assert report.live_peak_bytes is not None
    assert report.live_peak_bytes - report.standing_bytes == MB
    assert report.allocations == 2


def test_the_graph_kept_for_backward_is_alive_at_the_peak() -> None:
    weight = torch.ones(FLOATS, requires_grad=True)

    def step() -> None:
        y = (weight * 2).sin()  # kept: sin needs its input
        y = y.cos()  # kept again
        y.sum().backward()

    report = measure_memory(step)
    kept = [holder for holder in report.holders if holder.phase == "forward" and holder.bytes >= MB]
    assert report.live_peak_bytes is not None
    assert sum(holder.bytes for holder in report.holders) == report.live_peak_bytes
    assert {holder.source.file for holder in kept if holder.source} == {"tests/train/test_memory.py"}
    assert any(holder.source and "kept: sin" in holder.source.code for holder in kept)


def test_a_gradient_is_held_by_the_line_of_its_forward_operator() -> None:
    weight = torch.ones(FLOATS, requires_grad=True)

    def step() -> None:
        (weight * 2).sum().backward()  # here

    held = [holder for holder in measure_memory(step).holders if holder.phase == "backward"]
    assert held
    assert all(holder.source and "here" in holder.source.code for holder in held)


def test_weights_and_last_gradients_stand_before_the_step() -> None:
    layer = torch.nn.Linear(512, 512, bias=False)
    layer(torch.ones(1, 512)).sum().backward()
    report = measure_memory(lambda: None)
    standing = {holder.operator: holder.bytes for holder in report.holders if holder.phase == "before"}
    assert standing["weights"] >= MB
    assert standing["gradients"] >= MB
    assert report.naive_bytes == report.live_peak_bytes == report.standing_bytes


def test_views_and_in_place_operators_ask_for_nothing() -> None:
    x = torch.zeros(FLOATS)
    report = measure_memory(lambda: x.view(2, -1).add_(1).t())
    assert report.allocations == 0


def test_measuring_changes_no_number() -> None:
    def weights_after(measured: bool) -> list[list[float]]:
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 3)
        optimizer = torch.optim.Adam(layer.parameters())

        def step() -> None:
            optimizer.zero_grad()
            layer(torch.ones(2, 3)).square().sum().backward()
            optimizer.step()

        measure_memory(step) if measured else step()
        return layer.weight.tolist()  # type: ignore[no-any-return]

    assert weights_after(True) == weights_after(False)


def test_the_actual_peak_is_the_processs_own() -> None:
    def step() -> None:
        torch.ones(64 * FLOATS)  # touched, so that it is really there

    report = measure_memory(step)
    assert report.actual_peak_bytes is not None
    assert report.resident_before_bytes is not None
    assert report.actual_peak_bytes - report.resident_before_bytes > 32 * MB


def test_the_report_can_be_read() -> None:
    text = str(measure_memory(lambda: torch.zeros(FLOATS)))
    assert "naive sum" in text
    assert "live peak" in text
    assert "aten.zeros 262144 float32  tests/train/test_memory.py:" in text


@pytest.mark.mindspore
def test_mindspore_tells_the_sum_and_the_actual_peak_and_no_live_peak() -> None:
    import mindspore as ms

    x = ms.Tensor(np.ones(FLOATS, np.float32))

    def step() -> Any:
        return ms.ops.add(ms.ops.mul(x, x), x).asnumpy()

    report: MemoryReport = measure_memory(step)
    assert report.framework == "mindspore"
    assert report.naive_bytes - report.standing_bytes == 2 * MB
    assert report.live_peak_bytes is None
    assert report.actual_peak_bytes is not None
    assert any("no live peak" in note for note in report.notes)


def test_the_switch_reaches_compiled_buffers_and_says_what_it_cannot_reach() -> None:
    from torch._inductor import config

    try:
        off = set_memory_reuse(False)
        assert (config.allow_buffer_reuse, config.inplace_buffers) == (False, False)
        assert any("malloc" in limit for limit in off.limits)
    finally:
        on = set_memory_reuse(True)
    assert (config.allow_buffer_reuse, config.inplace_buffers, on.on) == (True, True, True)


def test_the_switch_takes_true_or_false() -> None:
    with pytest.raises(TrainError, match="True or False"):
        set_memory_reuse(1)  # type: ignore[arg-type]
