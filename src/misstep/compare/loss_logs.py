"""Loss curves as trainings leave them: logs of any wording, JSON lines, CSV, event files, runs.

    epoch: 1 step: 10, loss is 2.5              MindSpore's LossMonitor, Megatron, most prints
    {'loss': 2.5, 'epoch': 0.1}                 Hugging Face's Trainer; trainer_state.json too
    {"step": 10, "train/loss": 2.5}             JSON lines
    step,loss                                   CSV with a header
    events.out.tfevents.*, *_MS, summary_dir    TensorBoard, MindSpore, our own SummaryCollector

The word asked for is taken where it stands alone (`loss`, not `eval_loss`) before where it ends a longer one. Lines
that name no step are counted from 1; a step that begins again (a new epoch) goes on where the last one ended.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misstep.errors import CompareError
from misstep.store.foreign.mindspore.summary import looks_like_summary, read_summary

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)"
_LOSS = re.compile(rf"(?<![\w.])(?P<tag>[\w/ ]*loss[\w/]*)\s*(?:is)?\s*[:=]?\s*\(?(?P<value>{_NUMBER})", re.IGNORECASE)
_STEP = re.compile(r"(?<![\w])(?:global[_ ]?step|step|iter(?:ation)?)s?\s*(?:[:=]|\[)?\s*(?P<step>\d+)", re.IGNORECASE)
_BEFORE = re.compile(r".*\d\S*\s+")
"""What stands before the name of a number on its line: `epoch 1 step 1 loss` is `loss`."""
_STEP_NAMES = ("global_step", "step", "_step", "iteration", "iter", "train/global_step", "trainer/global_step")
_PYTHON_ONLY = re.compile(r"\b(?:nan|inf)\b")


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Losses by step."""

    values: Mapping[int, float]
    numbered: bool = True
    """False where the log names no steps and they were counted."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """One number of a log that may be the loss."""

    tag: str
    step: int | None
    value: float


def read_loss_log(path: str | Path, *, tag: str = "loss") -> dict[int, float]:
    """Losses from a log or any of the formats above, by step.

    >>> read_loss_log("train.log", tag="lm loss")
    """
    return dict(read_curve(path, tag=tag).values)


def read_curve(path: str | Path, *, tag: str = "loss") -> LossCurve:
    """The same, and whether the steps were named."""
    where = Path(path)
    if not where.exists():
        raise CompareError(f"no such file: {where}")
    seen = list(_from_summary(where) if looks_like_summary(where) else _from_file(where, tag))
    chosen = _chosen(seen, tag)
    if not chosen:
        tags = ", ".join(dict.fromkeys(one.tag for one in seen)) or "none"
        raise CompareError(
            f"{path} has no line with {tag!r} and a number; name the word before the loss with --tag (found: {tags})"
        )
    return _curve(chosen)


def _curve(chosen: list[_Seen]) -> LossCurve:
    if any(one.step is None for one in chosen):
        return LossCurve({number: one.value for number, one in enumerate(chosen, start=1)}, numbered=False)
    values: dict[int, float] = {}
    offset, last = 0, -1
    for one in chosen:
        step = one.step or 0
        if step < last:
            offset = max(values)
        last = step
        values[step + offset] = one.value
    return LossCurve(values)


def _chosen(seen: list[_Seen], tag: str) -> list[_Seen]:
    """The lines of one tag: the word itself, then one of training, then the most frequent that ends in it."""
    wanted = _plain(tag)
    tags = Counter(one.tag for one in seen if _plain(one.tag).endswith(wanted))
    exact = [name for name in tags if _plain(name) == wanted]
    training = [name for name in tags if "train" in name.lower() and len(tags) > 1]
    names = exact or training[:1] or [name for name, _ in tags.most_common(1)]
    return [one for one in seen if one.tag in names]


def _plain(tag: str) -> str:
    return " ".join(tag.lower().removesuffix("/auto").split())


def _from_summary(path: Path) -> Iterator[_Seen]:
    for tag, points in read_summary(path).scalars.items():
        for point in points:
            yield _Seen(tag, point.step, point.value)


def _from_file(path: Path, tag: str) -> Iterator[_Seen]:
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".csv":
        return _from_records(csv.DictReader(text.splitlines(), skipinitialspace=True))
    if path.suffix == ".json":
        return _from_records(_records_in(_parsed(text)))
    return _from_lines(text.splitlines(), tag)


def _records_in(thing: Any) -> list[dict[str, Any]]:
    """`log_history` of trainer_state.json, or a list of records."""
    if isinstance(thing, dict):
        thing = thing.get("log_history") or [thing]
    return [one for one in thing if isinstance(one, dict)] if isinstance(thing, list) else []


def _from_lines(lines: Iterable[str], tag: str) -> Iterator[_Seen]:
    for line in lines:
        brace = line.find("{")
        record = _parsed(line[brace : line.rfind("}") + 1]) if brace >= 0 else None
        if isinstance(record, dict):
            yield from _from_records([record])
            continue
        step = _STEP.search(line)
        number = int(step["step"]) if step else None
        found = [(one["tag"], one["value"]) for one in _LOSS.finditer(line)]
        if "loss" not in tag.lower():
            asked = re.search(rf"{re.escape(tag)}\s*(?:is)?\s*[:=]?\s*\(?({_NUMBER})", line, re.IGNORECASE)
            found += [(tag, asked[1])] if asked else []
        for name, value in found:
            yield _Seen(_BEFORE.sub("", name).strip(), number, float(value))


def _from_records(records: Iterable[Mapping[str, Any]]) -> Iterator[_Seen]:
    for record in records:
        step = next((_number(record[name]) for name in _STEP_NAMES if name in record), None)
        number = int(step) if step is not None and math.isfinite(step) else None
        if {"tag", "value"} <= record.keys() and _number(record["value"]) is not None:
            yield _Seen(str(record["tag"]), number, float(record["value"]))
            continue
        for name, value in record.items():
            read = _number(value) if name not in _STEP_NAMES else None
            if read is not None:
                yield _Seen(str(name), number, read)


def _parsed(text: str) -> Any:
    """JSON, or the dictionary a Python program printed; None for anything else."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(_PYTHON_ONLY.sub(lambda found: f"'{found[0]}'", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
