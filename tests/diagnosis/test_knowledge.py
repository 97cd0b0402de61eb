"""Errors as PyTorch and MindSpore really word them lead to the right cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from misstep.diagnosis.crash.knowledge import OURS, knowledge, likely_causes
from misstep.errors import FormatError

RAISED: dict[str, Callable[[], object]] = {
    "matmul-shapes": lambda: nn.Linear(4, 8)(torch.ones(2, 5)),
    "conv-channels": lambda: nn.Conv2d(3, 8, 3)(torch.ones(1, 1, 8, 8)),
    "broadcast-shapes": lambda: torch.ones(3) + torch.ones(4),
    "view-size": lambda: torch.ones(6).view(4, 2),
    "stack-sizes": lambda: torch.stack([torch.ones(2), torch.ones(3)]),
    "dtype-mismatch": lambda: nn.Linear(4, 8)(torch.ones(2, 4, dtype=torch.float64)),
    "index-out-of-range": lambda: nn.Embedding(4, 2)(torch.tensor([4])),
    "backward-twice": lambda: [loss.backward() for loss in [nn.Linear(2, 1)(torch.ones(1, 2)).pow(2).sum()] * 2],
    "no-grad": lambda: torch.ones(1).sum().backward(),
    "unsupported-operator": lambda: torch.bitwise_and(torch.ones(2), torch.ones(2)),
    "state-dict": lambda: nn.Linear(2, 2).load_state_dict({"weight": torch.ones(3, 3)}),
    "file-not-found": lambda: Path("/nowhere/at/all").read_text(),
    "missing-key": lambda: {}["labels"],  # type: ignore[index]
    "missing-module": lambda: __import__("no_such_package_anywhere"),
    "out-of-memory-host": lambda: torch.empty(1 << 50),
}


@pytest.mark.parametrize("cause", sorted(RAISED))
def test_a_real_error_is_recognised(cause: str) -> None:
    with pytest.raises(Exception) as raised:
        RAISED[cause]()
    error = f"{type(raised.value).__name__}: {raised.value}"
    assert likely_causes({"error": error}, frameworks=["torch"])[0].id == cause, error


def test_what_was_matched_is_filled_into_the_words() -> None:
    error = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x5 and 4x8)"
    (cause,) = likely_causes({"error": error})
    assert cause.words("en").title == "a linear layer got 16x5, its weight is 4x8: the inner sizes differ"
    assert cause.words("zh").title.startswith("线性层输入 16x5")


def test_entries_of_the_other_framework_are_left_out() -> None:
    error = "ValueError: For 'MatMul', the input dimensions must be equal, but got 'x1_col': 4 and 'x2_row': 5."
    assert likely_causes({"error": error}, frameworks=["torch"]) == []
    (cause,) = likely_causes({"error": error}, frameworks=["mindspore"])
    assert (cause.id, cause.words("en").title) == ("mindspore-shape", "MatMul got shapes that do not fit")


def test_every_entry_speaks_both_languages_and_is_named_once() -> None:
    entries = knowledge()
    assert len(entries) >= 25
    assert len({entry.id for entry in entries}) == len(entries)
    for entry in entries:
        assert entry.en.title
        assert entry.zh.title != entry.en.title


def test_patterns_of_ones_own_are_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "knowledge.toml"
    mine.write_text(
        "[[cause]]\nid = 'ours'\npattern = 'vocab (?P<file>\\S+) is empty'\nen = {title = 'fetch {file}'}\n"
    )
    monkeypatch.setenv("MISSTEP_KNOWLEDGE", str(mine))
    (cause,) = likely_causes({"error": "RuntimeError: vocab en.txt is empty"})
    assert (cause.id, cause.words("zh").title) == ("ours", "fetch en.txt")


def test_a_broken_file_of_patterns_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "knowledge.toml"
    mine.write_text("[[cause]]\nid = 'ours'\npattern = '('\nen = {title = 'x'}\n")
    monkeypatch.setenv("MISSTEP_KNOWLEDGE", str(mine))
    with pytest.raises(FormatError, match=r"knowledge\.toml"):
        likely_causes({"error": "x"})
    assert OURS.exists()
