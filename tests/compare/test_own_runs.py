"""Two run directories of our own, laid side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from misstep.compare.layers import diff
from misstep.core.address import Address
from misstep.core.graph import Node, Source, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.errors import FormatError, TensorUnavailable
from misstep.store.foreign.sniff import source_of
from misstep.store.reader import open_run
from misstep.store.writer import RunWriter

X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)


def recorded(folder: Path, factor: float, *, tensors: bool = True) -> Path:
    writer = RunWriter(folder, 0, RunInfo(name=folder.name, command=("python", "train.py"), started=1_794_765_845.0))
    for index, name in enumerate(("fc1", "act", "fc2")):
        writer.add_node(Node(index, name, "module", "Linear", source=Source("train.py", index + 1), order=index))
        writer.add_tensor(TensorKey(index, "output"))
    for step in (1, 2):
        for index, name in enumerate(("fc1", "act", "fc2")):
            value = X * np.float32(index + 1) * np.float32(factor if step == 2 and index else 1.0)
            if tensors:
                writer.tensor(Address(name, step=step), value, "float32", value.shape)
        writer.step(Step(step, loss=1.0, time=1000.0), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    writer.end("finished", 0)
    return folder


def test_two_runs_part_at_the_node_and_line_where_they_part(tmp_path: Path) -> None:
    one, other = recorded(tmp_path / "one", 1.0), recorded(tmp_path / "other", 1.5)
    assert diff(one, other, step=1)
    found = diff(f"{one}@2", f"{other}@2")
    assert found.cause is not None
    assert (found.cause.name, found.cause.entry.source_line) == ("act:output", "train.py:2")
    assert not diff(open_run(one), open_run(other))


def test_a_run_is_compared_with_itself_at_another_step(tmp_path: Path) -> None:
    run = recorded(tmp_path / "one", 2.0)
    found = diff(run, run, step=1, right_step=2)
    assert [row.verdict for row in found.rows] == ["identical", "different", "different"]


def test_a_run_without_tensors_says_how_to_get_some(tmp_path: Path) -> None:
    with pytest.raises(TensorUnavailable, match="--dump"):
        source_of(recorded(tmp_path / "bare", 1.0, tensors=False))


def test_an_unknown_name_is_neither_file_nor_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match="no such file or folder: nowhere; no run 'nowhere'"):
        source_of("nowhere@3")
