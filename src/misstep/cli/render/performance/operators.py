"""How a table of operators looks in a terminal: what takes longest first, each with its shapes, module and line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from misstep.performance.operators import CONVERSIONS, TINY_US, Operator, Profile, Slower
from misstep.sentences.cli import operators as words

_NOTABLE = 0.10
_MANY = 0.5


def tell_profile(console: Console, profile: Profile, *, most: int) -> None:
    whole = max(profile.self_us, 1e-9)
    console.print(
        words.SUMMARY(
            run=profile.run,
            steps=profile.steps,
            ms=whole / profile.steps / 1e3,
            wall=profile.seconds * 1e3 / profile.steps,
        ),
        style="bold",
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("", justify="right")
    table.add_column(words.COLUMN_SHARE(), justify="right")
    table.add_column("ms", justify="right")
    table.add_column(words.COLUMN_CALLS(), justify="right")
    for title in (words.COLUMN_OPERATOR(), words.COLUMN_SHAPES(), "", words.COLUMN_WHERE()):
        table.add_column(title, overflow="fold")
    for number, one in enumerate(profile.operators[:most], 1):
        table.add_row(
            str(number),
            f"{one.self_us / whole:.1%}",
            f"{one.self_us / profile.steps / 1e3:.3f}",
            f"{one.calls / profile.steps:.4g}",
            one.name,
            shapes(one.shapes),
            _rate(one),
            " ".join(part for part in (words.PHASES[one.phase](), one.module, one.line) if part),
        )
    console.print(table)
    for sentence in remarks(profile):
        console.print(sentence)


def remarks(profile: Profile) -> list[str]:
    """What the table as a whole shows: conversions, and operators too small to be worth starting."""
    whole = max(profile.self_us, 1e-9)
    told = []
    converting = sum(one.self_us for one in profile.operators if one.name in CONVERSIONS) / whole
    if converting > _NOTABLE:
        told.append(words.CONVERSIONS(share=converting))
    tiny = [one for one in profile.operators if one.self_us / one.calls < TINY_US]
    share = sum(one.self_us for one in tiny) / whole
    if share > _MANY:
        told.append(words.TINY(share=share, calls=sum(one.calls for one in tiny) / profile.steps, run=profile.run))
    return told


def tell_comparison(console: Console, left: Profile, right: Profile, found: Sequence[Slower]) -> None:
    console.print(words.SAME_TIME(before=left.self_us / left.steps, after=right.self_us / right.steps), style="bold")
    table = Table(box=None, padding=(0, 2, 0, 0), title=words.COMPARED(left=left.run, right=right.run))
    for title in (left.run[-12:], right.run[-12:], ""):
        table.add_column(title, justify="right")
    for title in (words.COLUMN_OPERATOR(), words.COLUMN_SHAPES(), words.COLUMN_WHERE()):
        table.add_column(title, overflow="fold")
    for one in found:
        table.add_row(
            f"{one.before:.1f}",
            f"{one.after:.1f}",
            f"{one.after - one.before:+.1f}",
            one.name,
            shapes(one.shapes),
            " ".join(part for part in (one.module, one.line) if part),
        )
    console.print(table)


def shapes(given: Sequence[Sequence[int]]) -> str:
    return " ".join("×".join(map(str, dims)) for dims in given)


def _rate(one: Operator) -> str:
    return words.RATE(gflops=one.flops / one.self_us / 1e3) if one.flops and one.self_us else ""
