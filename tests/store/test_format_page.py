"""docs/format.md is enough to read a run without misstep, and its tables are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from small_run import record, values

from misstep.core.stats import DTYPE_NAMES, ROW

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")


def test_the_programs_of_the_page_read_a_run(tmp_path: Path) -> None:
    found: dict[str, Any] = {"run": record(tmp_path / "try", steps=3)}
    for program in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(program, found)
    assert found["losses"] == [1.0, 1 / 2, 1 / 3]
    assert found["nodes"] == {0: "encoder.fc", 1: "encoder.norm", 2: "decoder.fc"}
    assert (found["row"], found["sound"].tolist(), found["means"].tolist()) == (ROW, [True] * 9, [1.0, 2.0, 3.0])
    assert list(found["tensors"]) == ["encoder.fc:output@1", "encoder.fc:output@2", "encoder.fc:output@3"]
    assert np.array_equal(found["tensors"]["encoder.fc:output@3"][0], values(3))
    assert all(found["digests"].values())


def test_the_page_lists_every_dtype_under_its_code() -> None:
    table = dict(re.findall(r"\| (\d+) \| ((?:u?int|b?float|bool|complex|unknown)\w*) (?=\|)", PAGE))
    assert {int(code): name for code, name in table.items()} == dict(enumerate(DTYPE_NAMES))
