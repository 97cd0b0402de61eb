"""Writes the support table of docs/mindspore.md and its Chinese twin, from the contract every adapter is tested with.

PyNative keeps the whole contract. In graph mode a fact of it is tested as it stands, proven by a test of its own, or
does not apply, with the reason: tests/contract/graph_mode.py says which.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.contract import graph_mode  # noqa: E402
from tests.contract.graph_mode import REASONS  # noqa: E402

CONTRACT = ROOT / "src" / "misstep" / "testing" / "contract"
CONTRACTS = [CONTRACT / name for name in ("rows.py", "faults.py", "manners.py", "replay.py")]
ELSEWHERE = {**graph_mode.ELSEWHERE, **graph_mode.AGAIN}
PAGES = {"en": "mindspore.md", "zh": "mindspore.zh.md"}
BEGIN, END = "<!-- support table, written by docs/write_mindspore.py -->", "<!-- end of the support table -->"


def facts() -> list[str]:
    """The facts of the contracts, in their order."""
    return [fact for path in CONTRACTS for fact in re.findall(r"def test_(\w+)\(", path.read_text(encoding="utf-8"))]


def table(language: str) -> str:
    """The table as the page holds it."""
    zh = language == "zh"
    head = (
        "| 每个适配器都要满足 | PyNative | 图模式 |" if zh else "| what every adapter keeps | PyNative | graph mode |"
    )
    lines = [head, "| --- | --- | --- |"]
    for fact in facts():
        answer = ELSEWHERE.get(fact, "")
        said = REASONS[answer][zh] if answer in REASONS else f"✓ `{answer.rpartition('::')[2]}`" if answer else "✓"
        lines.append(f"| {fact.replace('_', ' ')} | ✓ | {said} |")
    return "\n".join([BEGIN, "", *lines, "", END])


def with_table(text: str, language: str) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + table(language) + rest.partition(END)[2]


if __name__ == "__main__":
    for language, name in PAGES.items():
        path = Path(__file__).parent / name
        path.write_text(with_table(path.read_text(encoding="utf-8"), language), encoding="utf-8")
