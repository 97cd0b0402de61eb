"""The sixteen PyTorch networks ported, built, and checked against their originals."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import write_batch
from twin_nets import HERE, NAMES

from misstep.diagnosis.lint.source import read_source
from misstep.migration.apimap.table import load
from misstep.migration.lockstep.stages import check
from misstep.migration.port.file import port_source
from misstep.migration.sources import build, read_batch

pytestmark = pytest.mark.mindspore


@pytest.mark.parametrize("name", NAMES)
def test_a_ported_network_computes_the_same(name: str, tmp_path: Path) -> None:
    ported = port_source(read_source(HERE / f"torch_{name}.py"), load())
    assert ported.left_lines <= 0.05 * ported.lines, ported.left
    target = tmp_path / f"{name}.py"
    target.write_text(ported.text, encoding="utf-8")
    left, right = build(f"{HERE}/torch_{name}.py:build", "torch"), build(f"{target}:build", "mindspore")
    batch = read_batch(str(write_batch(tmp_path, name)), labelled=left.loss is not None)
    report = check(left, right, batch)
    assert report.findings == []
    assert len(report.stages) == 4
