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
from misstep.store.reading.reader import open_run
from misstep.store.writing.writer import RunWriter

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


def trained_with(folder: Path, *, weight: float, rate: float, steps: tuple[int, ...]) -> Path:
    """One weight, what it makes of a batch, and the weight after the update, as a dump keeps them."""
    writer = RunWriter(folder, 0, RunInfo(name=folder.name, command=("python", "train.py"), started=1_794_765_845.0))
    writer.add_node(Node(0, "fc", "module", "Linear", order=0))
    writer.add_node(Node(1, "fc.weight", "parameter", "Parameter", order=1))
    value = np.full((8, 8), weight, np.float32)
    if 0 in steps:
        writer.tensor(Address("fc.weight", "param", step=0), value, "float32", value.shape)
    writer.tensor(Address("fc", "input", step=1), X, "float32", X.shape)
    output = X @ value.T
    writer.tensor(Address("fc", "output", step=1), output, "float32", output.shape)
    after = value - np.float32(rate)
    writer.tensor(Address("fc.weight", "param", step=1), after, "float32", after.shape)
    writer.end("finished", 0)
    return folder


def test_a_step_is_judged_by_the_weights_it_began_with(tmp_path: Path) -> None:
    one = trained_with(tmp_path / "one", weight=0.5, rate=0.1, steps=(0, 1))
    other = trained_with(tmp_path / "other", weight=0.505, rate=0.1, steps=(0, 1))
    found = diff(f"{one}@1", f"{other}@1")
    assert found.cause is not None
    assert found.cause.name == "fc.weight:param"
    learned = trained_with(tmp_path / "learned", weight=0.5, rate=0.3, steps=(0, 1))
    assert diff(f"{one}@1", f"{learned}@1")


def test_weights_after_the_update_follow_from_what_ran_before_it(tmp_path: Path) -> None:
    one = trained_with(tmp_path / "one", weight=0.5, rate=0.1, steps=(1,))
    other = trained_with(tmp_path / "other", weight=0.505, rate=0.1, steps=(1,))
    found = diff(f"{one}@1", f"{other}@1")
    assert [(row.name, row.part) for row in found.rows if not row.close] == [
        ("fc:output", "cause"),
        ("fc.weight:param", "consequence"),
    ]
    learned = trained_with(tmp_path / "learned", weight=0.5, rate=0.3, steps=(1,))
    cause = diff(f"{one}@1", f"{learned}@1").cause
    assert cause is not None
    assert cause.name == "fc.weight:param"
