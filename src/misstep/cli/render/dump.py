"""A dump of another tool told to a person, as `show` tells a run: what it holds, the first bad value, and what to ask.

Of a large dump the first gigabyte is looked at, for the answer to come at once; `misstep check` looks at all of it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from misstep.cli import DIFFERS, FINE
from misstep.cli.render.crash import size
from misstep.cli.render.json import print_json
from misstep.cli.render.run import numbers_table, tell_more, tell_values
from misstep.cli.render.text import terminal
from misstep.core.address import Pattern
from misstep.core.stats import DTYPE_CODES, ITEM_BYTES, TensorStats
from misstep.errors import AddressError, FormatError, TensorUnavailable
from misstep.sentences.cli import files as filewords
from misstep.sentences.cli import general as words
from misstep.store.foreign.sniff import kind_of, source_of
from misstep.store.foreign.source import Entry, Summarised, TensorSource, stats_of

_LOOKED_AT = 1 << 30


@dataclass(frozen=True, slots=True)
class Seen:
    """A tensor of a dump, and its statistics when it was looked at."""

    entry: Entry
    stats: TensorStats | None

    @property
    def bad(self) -> bool:
        return self.stats is not None and not self.stats.finite

    @property
    def name(self) -> str:
        return str(self.entry.address)


def show_dump(path: str, *, pattern: str | None, as_json: bool, check: bool, most: int) -> int:
    """What a dump holds; with `check` exit code 3 when a value that was looked at is not finite."""
    source = source_of(path)
    seen = _look(source, _chosen(source, path, pattern))
    if as_json:
        print_json({"path": path, "kind": kind_of(path), "tensors": [_facts(one) for one in seen]})
    else:
        _tell(terminal(), source, seen, path, most=most)
    return DIFFERS if check and any(one.bad for one in seen) else FINE


def tell_commands(console: Console, path: str, example: str) -> None:
    """What else can be asked of something another tool wrote."""
    place = shlex.quote(path)
    console.print()
    console.print(Text(filewords.MORE_COMMANDS(), style="bold"))
    for command, why in (
        (f"misstep show {place} {shlex.quote(example)}" if example else "", filewords.SHOW_ONE),
        (f"misstep check {place}", filewords.CHECK_THIS),
        (f"misstep diff {place} OTHER", filewords.DIFF_WITH),
        (f"misstep ui {place}", filewords.UI_OF),
    ):
        if command:
            console.print(Text(f"  $ {command}").append(f"  # {why()}", style="dim"))


def _chosen(source: TensorSource, path: str, pattern: str | None) -> list[Entry]:
    entries = source.entries()
    if not entries:
        raise FormatError(f"{path} holds no tensors", path=path)
    if pattern is None:
        return entries
    wanted = Pattern.parse(pattern)
    chosen = [entry for entry in entries if wanted.matches(entry.address)]
    if not chosen:
        there = ", ".join(dict.fromkeys(str(entry) for entry in entries[:6]))
        raise AddressError(f"no tensor {pattern!r} in {path}; it holds {there}, …", address=pattern)
    return chosen


def _look(source: TensorSource, entries: Sequence[Entry]) -> list[Seen]:
    """The statistics of as many tensors as a moment allows."""
    seen = []
    room = _LOOKED_AT
    for entry in entries:
        room -= _bytes(entry)
        stats = None
        if room >= 0:
            try:
                stats = stats_of(source.array(entry))
            except (TensorUnavailable, FormatError):  # only its statistics were kept, or it cannot be read
                stats = source.stats(entry) if isinstance(source, Summarised) else None
        seen.append(Seen(entry, stats))
    return seen


def _bytes(entry: Entry) -> int:
    return math.prod(entry.shape) * ITEM_BYTES[DTYPE_CODES.get(entry.dtype, DTYPE_CODES["float64"])]


def _facts(one: Seen) -> dict[str, Any]:
    told: dict[str, Any] = {"address": one.name, "dtype": one.entry.dtype, "shape": one.entry.shape}
    if one.stats is not None:
        told["stats"] = {name: getattr(one.stats, name) for name in one.stats.__dataclass_fields__}
    return told


def _tell(console: Console, source: TensorSource, seen: Sequence[Seen], path: str, *, most: int) -> None:
    _tell_head(console, seen, path)
    bad = [one for one in seen if one.bad]
    looked = [one for one in seen if one.stats is not None]
    if bad and bad[0].stats is not None:
        sentence = filewords.FIRST_BAD(address=bad[0].name, what=bad[0].stats.describe())
        console.print(Text(sentence, style="bold red"))
    elif looked:
        console.print(filewords.ALL_FINITE(), style="green")
    ranked = sorted(looked, key=lambda one: not one.bad)[:most]  # what is bad first, else in order
    if looked:
        rows = ((one.name, one.stats) for one in ranked if one.stats is not None)
        console.print(numbers_table(words.COLUMN_TENSOR(), rows))
        tell_more(console, len(looked), most)
    if len(looked) < len(seen):
        told = filewords.NOT_ALL_READ(count=len(looked), all=len(seen), path=shlex.quote(path))
        console.print(Text(told, style="yellow"))
    if len(looked) == len(seen) == 1:
        with suppress(TensorUnavailable):
            tell_values(console, seen[0].entry.address, source.array(seen[0].entry))
    tell_commands(console, path, str((bad or list(seen))[0].entry.address))


def _tell_head(console: Console, seen: Sequence[Seen], path: str) -> None:
    steps = sorted({one.entry.step for one in seen if one.entry.step is not None})
    ranks = {one.entry.rank for one in seen}
    facts = [
        kind_of(path),
        filewords.TENSORS(count=len(seen)),
        filewords.STEPS(first=steps[0], last=steps[-1]) if steps else "",
        words.RANKS(count=len(ranks)) if len(ranks) > 1 else "",
        size(sum(_bytes(one.entry) for one in seen)),
    ]
    head = Text(Path(path).name or path, style="bold")
    head.append(" · " + " · ".join(filter(None, facts)), style="not bold")
    console.print(head)
