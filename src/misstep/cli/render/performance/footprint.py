"""How a training's memory looks in a terminal: the peak, what it consists of, who holds it, and whether it fits."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from misstep.performance.footprint import Footprint, LargestBatch
from misstep.performance.resident import Resident
from misstep.sentences.cli import footprint as words
from misstep.sentences.speed import footprint as facts
from misstep.sentences.speed.advice import SEGMENTS

_MOST_HOLDERS = 8
_ENOUGH_LOOKS = 14


def size(count: float) -> str:
    """1536 → 1.5 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def tell_footprint(console: Console, found: Footprint) -> None:
    told = words.PREDICTED if found.fake else words.MEASURED
    console.print(told(peak=size(found.peak), samples=found.samples), style="bold")
    at = found.peak_at
    phase = SEGMENTS[at["phase"]]() if at.get("phase") in SEGMENTS else str(at.get("phase", ""))
    console.print("  " + words.PEAK_AT(step=at["step"], phase=phase, operator=at["operator"], place=_place(at)))
    for kind, held in sorted(found.kinds.items(), key=lambda item: -item[1]):
        console.print(f"  {facts.KINDS[kind]():<16} {size(held):>12}  {held / found.peak:.0%}")
    console.print(words.HELD_BY(), style="bold")
    for one in found.holders[:_MOST_HOLDERS]:
        shape = "×".join(map(str, one["shape"]))
        console.print(
            f"  {size(one['bytes']):>12}  {facts.KINDS[one['kind']]()}  {one['operator']} {shape} {one['dtype']}"
            f"  {_place(one)}",
            markup=False,
        )
    console.print("  " + words.REUSE(naive=size(found.naive), factor=found.naive / max(1, found.peak)))


def tell_fit(console: Console, found: Footprint, limit: int, fits: LargestBatch | None, *, asked: bool) -> None:
    if found.peak <= limit:
        console.print(words.FITS(limit=size(limit)), style="bold")
    else:
        console.print(words.DOES_NOT_FIT(limit=size(limit), more=size(found.peak - limit)), style="bold")
        console.print("  " + words.WAYS_OUT())
    if asked and fits is None:
        console.print(words.NONE_FITS(), style="bold")
    elif fits is not None and fits.next_peak is None:
        console.print(words.ALL_DATA(samples=fits.samples, peak=size(fits.peak)), style="bold")
    elif fits is not None and fits.next_peak is not None:
        console.print(
            words.LARGEST(
                samples=fits.samples, peak=size(fits.peak), next=fits.samples + 1, next_peak=size(fits.next_peak)
            ),
            style="bold",
        )
    console.print("  " + words.NOT_SEEN(), style="dim")


def tell_resident(console: Console, run: str, held: tuple[Resident, ...]) -> None:
    if not held:
        console.print(words.NOT_LOOKED(run=run))
    for one in held:
        console.print(
            words.RESIDENT(
                run=run,
                rank=one.rank,
                first=size(one.first),
                most=size(one.most),
                step=one.most_at_step,
                last=size(one.last),
                looks=one.looks,
            )
        )
        if one.leak is not None:
            leak = words.LEAK(per_step=size(one.leak.bytes_per_step), risen=size(one.leak.risen))
            console.print("  " + leak, style="bold")
        else:
            console.print("  " + (words.NO_LEAK() if one.looks >= _ENOUGH_LOOKS else words.TOO_SHORT()))


def _place(one: dict[str, Any]) -> str:
    source = one.get("source")
    line = f"{source['file']}:{source['line']}" if source else ""
    return " ".join(part for part in (one.get("module", ""), line) if part)
