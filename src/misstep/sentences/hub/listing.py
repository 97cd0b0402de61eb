"""The list of runs: why one of them cannot be deleted."""

from __future__ import annotations

from misstep.sentences.text import Text

STILL_RUNS = Text(
    "{run} still runs; terminate it first:  misstep stop {run}",
    "训练 {run} 仍在运行；请先结束它：  misstep stop {run}",
)
LIES_ELSEWHERE = Text(
    "{run} does not lie in this folder; delete it where it lies",
    "训练 {run} 不在此文件夹中；请到它所在的位置删除",
)
