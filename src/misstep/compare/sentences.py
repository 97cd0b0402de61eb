"""A comparison told in words: how much matches, where it begins to differ, and what was still fine there."""

from __future__ import annotations

import math

from misstep.compare.names import last_word, owner
from misstep.compare.result import Comparison, Row
from misstep.compare.setups import SettingChange
from misstep.store.foreign.elements import is_float

_PLACES = {
    "input": "input",
    "output": "output",
    "param": "parameter",
    "buffer": "buffer",
    "grad": "gradient",
    "grad_input": "gradient handed on",
    "grad_output": "gradient arriving",
    "loss": "loss",
}


def summary_of(found: Comparison) -> str:
    """'148 of 151 tensors match; first difference in execution order: layer1.0.bn1 output, relative 9e-2 …'"""
    paired = [row for row in found.rows if row.verdict != "missing"]
    close = sum(row.close for row in paired)
    parts = [f"{close} of {len(paired)} tensors match"]
    counts = found.counts
    if close and counts.get("identical", 0) < close:
        parts[0] += f" ({counts.get('identical', 0)} bit for bit, {counts.get('noise', 0)} up to rounding)"
    if found.dtypes is not None:
        parts.append(f"the left side computes in {found.dtypes[0]}, the right in {found.dtypes[1]}")
    parts += found.facts
    first, cause = found.first_difference, found.cause
    several = len({row.entry.step for row in found.rows}) > 1
    if first is not None:
        parts.append(f"first difference in execution order: {_at(first, several)}{describe(first)}")
        parts += surroundings(found, first)
    if cause is not None and cause is not first:
        parts.append(f"the cause: {_at(cause, several)}{describe(cause)}")
        parts += surroundings(found, cause)
    larger = _larger(found)
    if larger is not None:
        parts.append(f"a far larger one follows that this does not explain: {_at(larger, several)}{describe(larger)}")
        parts += surroundings(found, larger)
    settings = [one for one in found.settings if not any(_told(one) in part for part in parts)]
    if settings:
        more = f", and {len(settings) - 3} more" if len(settings) > 3 else ""
        parts.append("settings differ: " + ", ".join(map(str, settings[:3])) + more)
    others = len(found.causes) - (1 if cause is not None else 0) - (1 if larger is not None else 0)
    if others > 0:
        parts.append(f"{others} more {'row differs' if others == 1 else 'rows differ'} for reasons of their own")
    consequences = sum(row.part == "consequence" for row in found.rows)
    if consequences:
        parts.append(f"{consequences} later {'row is a consequence' if consequences == 1 else 'rows are consequences'}")
    parts += _left_over(found)
    return "; ".join(parts)


def _told(change: SettingChange) -> str:
    return f"its {change.setting} is {change.left} on the left, {change.right} on the right"


def _at(row: Row, several: bool) -> str:
    return f"step {row.entry.step}, " if several and row.entry.step is not None else ""


def _larger(found: Comparison) -> Row | None:
    """A cause far above the first one, so that something small does not hide it."""
    cause = found.cause
    if cause is None or cause.measures is None or not cause.relative < math.inf:
        return None
    return next((row for row in found.causes if row is not cause and row.relative > 100 * cause.relative), None)


def describe(row: Row) -> str:
    """One row in words: what it is, how far apart, how far rounding would take it, what it looks like."""
    entry = row.entry
    node = entry.name + (f" (call {entry.call})" if entry.call > 1 else "")
    words = f"{node} {_PLACES.get(entry.role, entry.role)}" + (f" {entry.slot}" if entry.slot else "")
    if row.verdict == "missing":
        side = "left" if row.left is not None else "right"
        return f"{words} exists only on the {side}"
    if row.verdict in ("shape", "dtype"):
        return f"{words}, {row.note}"
    if row.measures is None:
        return words
    found = row.measures
    if found.nonfinite_mismatch:
        text = words
    elif not is_float(entry.dtype):
        text = f"{words}, {found.count - found.equal:,} of {found.count:,} elements differ"
    else:
        text = f"{words}, relative {_short(row.relative)}"
    if row.verdict == "different" and row.relative > row.expected > 0:
        far = "far above" if row.relative > 100 * row.expected else "above"
        text += f", {far} what {entry.dtype} noise explains (expected ≤ {_short(row.expected)})"
    if row.note:
        text += f", {row.note}"
    if entry.source_line:
        text += f", at {entry.source_line}"
    return text


def surroundings(found: Comparison, row: Row) -> list[str]:
    """What the node was given: were its inputs and its parameters the same?"""
    entry = row.entry
    if entry.role not in ("output", "loss", "grad_input", "grad"):
        return []
    node = owner(entry.name) if entry.role == "grad" else entry.name
    inputs = [
        one
        for one in found.rows
        if (one.entry.name, one.entry.call, one.entry.step) == (node, entry.call, entry.step)
        and one.entry.role == "input"
    ]
    owned = [
        one
        for one in found.rows
        if one.entry.role in ("param", "buffer")
        and owner(one.entry.name) == node
        and (not one.entry.updated or (one.entry.step or 0) < (entry.step or 0))
    ]
    said = []
    if inputs:
        said.append(_state("its input was" if len(inputs) == 1 else "its inputs were", inputs))
    equal = [last_word(one.entry.name) for one in owned if one.verdict == "identical"]
    if equal:
        said.append(f"its {_and(equal)} {'equals' if len(equal) == 1 else 'equal'}")
    if inputs and all(one.close for one in inputs) and all(one.close for one in owned) and row.part == "cause":
        changed = [one for one in found.settings if one.node == node]
        said.append("; ".join(map(_told, changed)) or "so a setting or the formula of the node differs")
    return said


def _state(words: str, rows: list[Row]) -> str:
    if all(row.verdict == "identical" for row in rows):
        return f"{words} equal"
    if all(row.close for row in rows):
        return f"{words} equal up to {_short(max(row.relative for row in rows))}"
    return f"{words} different already"


def _left_over(found: Comparison) -> list[str]:
    said = []
    for side, entries in (("left", found.only_left), ("right", found.only_right)):
        if entries:
            names = list(dict.fromkeys(entry.name for entry in entries))
            tail = ", …" if len(names) > 3 else ""
            said.append(f"only on the {side}: {len(entries)} ({', '.join(names[:3])}{tail})")
    if found.notes:
        said.append(f"{len(found.notes)} could not be compared, the first because {found.notes[0]}")
    return said


def _short(number: float) -> str:
    if math.isnan(number):
        return "unknown"
    if math.isinf(number):
        return "infinite"
    if not number:
        return "0"
    exponent = math.floor(math.log10(abs(number)))
    if -2 <= exponent <= 3:
        return f"{number:.2g}"
    text = f"{number:.1e}"
    mantissa, _, power = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(power)}"


def _and(words: list[str]) -> str:
    every = list(dict.fromkeys(words))
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} and {every[-1]}"
