"""A crash told to a person: three lines, likely causes, then the evidence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import misstep.sentences.language as i18n
from misstep.cli.render.run import chart
from misstep.cli.render.text import moment, number, verdict_sentence
from misstep.diagnosis.crash.explain import Crash, Ending, Event, Spot
from misstep.sentences.cli import crash as say
from misstep.sentences.cli import general as words
from misstep.sentences.text import said
from misstep.store.reading.reader import Run

_FRAMES = 6
_LOG_LINES = 8


def three_lines(crash: Crash) -> list[str]:
    """What happened, where, and how things stood before."""
    many = len(crash.endings) > 1
    return [what(crash.culprit.event), where(crash.culprit.spot, crash.culprit.rank if many else None), before(crash)]


def tell_crash(console: Console, crash: Crash, run: Run, *, full: bool, most: int) -> None:
    """The whole record on a screen or two; `run` is called as the record is."""
    head = Text(crash.run, style="bold")
    versions = [f"{name} {version}" for name, version in run.info.frameworks.items()]
    head.append(" · " + " · ".join([moment(crash.time), *versions, run.info.host]), style="not bold")
    console.print(head)
    bad = crash.culprit.event.kind not in ("end", "asked")
    for line in three_lines(crash):
        console.print(Text(line, style="bold red" if bad else "bold"))
        bad = False
    if run.verdict is not None:
        console.print(Text(verdict_sentence(run.verdict, ranks=len(run.ranks)), style="red"))
    _tell_causes(console, crash)
    _tell_stack(console, crash, full=full)
    _tell_ranks(console, crash)
    _tell_lines(
        console,
        say.TITLE_EVENTS(),
        [f"{moment(e['time'])}  {e['kind']}  {said(e['text'])}" for e in crash.events[-most:]],
    )
    trail = [f"{one['name']} ({one['type']})" for one in crash.trail]
    if trail:
        _title(console, say.TITLE_TRAIL())
        _tell_position(console, crash)
        console.print(Padding(Text(" ← ".join(trail if full else trail[:most])), (0, 0, 0, 2)))
    _tell_values(console, crash, run, most=most)
    _tell_memory(console, crash, most=most)
    _tell_steps(console, crash)
    _tell_lines(console, say.TITLE_LOG(), crash.log if full else crash.log[-_LOG_LINES:], style="dim")
    if full:
        for name, text in crash.stacks.items():
            _tell_lines(console, f"{say.TITLE_STACK()}: {name}", text.splitlines(), style="dim")
    _tell_lines(console, words.TITLE_DAMAGE(), crash.problems, style="yellow")


def what(event: Event) -> str:
    """'RuntimeError: mat1 and mat2 …', 'the process was ended by SIGKILL (…)'."""
    if event.kind == "exception":
        return say.WHAT_EXCEPTION(name=event.name, text=event.text.partition("\n")[0][:300])
    if event.kind == "exit":
        return say.WHAT_EXIT(code=event.code, text=f": {event.text}" if event.text else "")
    if event.kind == "signal":
        meaning = say.MEMORY_KILLER if event.memory_killer else say.SIGNALS.get(event.name, say.SIGNAL_OTHER)
        return say.WHAT_SIGNAL(name=event.name, meaning=meaning())
    if event.kind == "hang":
        return say.WHAT_HANG(seconds=f"{event.seconds:.0f}")
    return {"asked": say.WHAT_ASKED, "end": say.WHAT_END}.get(event.kind, say.WHAT_LOST)()


def where(spot: Spot, rank: int | None) -> str:
    """'in step 5, forward, blocks.1.fc (Linear); train.py:12 `y = model(x)`'."""
    node = f", {spot.node}" + (f" ({spot.type})" if spot.type else "") if spot.node else ""
    source = f"; {spot.source}" + (f" `{spot.code}`" if spot.code else "") if spot.source else ""
    return say.WHERE(
        step=spot.step,
        rank=words.ON_RANK(rank=rank) if rank is not None else "",
        phase=say.PHASES[spot.phase]() if spot.phase in say.PHASES else "",
        node=node,
        source=source,
    )


def before(crash: Crash) -> str:
    rss = crash.memory.get("rss", 0)
    limit = min(crash.limits.values(), default=0)
    memory = say.BEFORE_MEMORY(memory=size(rss) + (say.OF_LIMIT(limit=size(limit)) if limit else "")) if rss else ""
    if not crash.culprit.last_step:
        return say.NO_STEP(memory=memory)
    loss = crash.loss if isinstance(crash.loss, str) else number(crash.loss)
    return say.BEFORE(
        step=crash.culprit.last_step, loss=say.BEFORE_LOSS(loss=loss) if crash.loss is not None else "", memory=memory
    )


def size(count: float) -> str:
    """1536 → '1.5 kB'."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1024 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return ""


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tell_causes(console: Console, crash: Crash) -> None:
    if not crash.causes:
        return
    _title(console, say.TITLE_CAUSES())
    for place, cause in enumerate(crash.causes, 1):
        spoken = cause.words(i18n.language())
        console.print(Text(f"{place}. {spoken.title}", style="yellow"))
        for line in (spoken.why, spoken.advice):
            if line:
                console.print(Padding(Text(line), (0, 0, 0, 3)))


def _tell_stack(console: Console, crash: Crash, *, full: bool) -> None:
    own = [frame for frame in crash.frames if full or not frame.get("library")]
    own = own or list(crash.frames)
    if own:
        _title(console, say.TITLE_STACK())
    for frame in own if full else own[-_FRAMES:]:
        line = Text(f"  {frame['file']}:{frame['line']}", style="cyan")
        line.append(f"  {frame.get('function', '')}", style="dim")
        console.print(line)
        if frame.get("code"):
            console.print(Text(f"    {frame['code']}", style="bold"))
        for name, value in (frame.get("locals") or {}).items():
            console.print(Text(f"      {name} = {value}", style="dim"))
    _tell_lines(console, say.TITLE_MACHINE(), crash.machine if full else crash.machine[:_FRAMES], style="dim")
    if full:
        for thread in crash.threads:
            if not thread.get("main"):
                lines = [f"{frame['file']}:{frame['line']}  {frame['code']}" for frame in thread["frames"]]
                _tell_lines(console, str(thread["thread"]), lines, style="dim")


def _tell_ranks(console: Console, crash: Crash) -> None:
    if len(crash.endings) < 2:
        return
    _title(console, say.TITLE_RANKS())
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in (
        say.COLUMN_RANK,
        say.COLUMN_STEP,
        say.COLUMN_WHAT,
        say.COLUMN_PLACE,
        say.COLUMN_WAITS,
        say.COLUMN_DONE,
    ):
        table.add_column(title(), overflow="fold")
    table.add_column("")
    for ending in crash.endings:
        first = ending is crash.culprit
        table.add_row(
            str(ending.rank),
            str(ending.last_step),
            Text(what(ending.event)[:60]),
            Text(_place(ending.spot)),
            f"{ending.collective} ({ending.waiting_seconds:.0f} s)" if ending.collective else "",
            str(ending.collectives),
            Text(_mark(crash, ending) if first else "", style="bold red"),
        )
    console.print(table)


def _mark(crash: Crash, ending: Ending) -> str:
    waited_for = crash.kind == "hang" and not ending.collective and any(one.collective for one in crash.endings)
    return say.NOT_THERE() if waited_for else say.FIRST()


def _place(spot: Spot) -> str:
    return spot.source or spot.node or spot.phase


def _tell_position(console: Console, crash: Crash) -> None:
    if crash.reached is not None:
        at = crash.reached
        here = [one.node for one in at.nodes if one.here]
        told = ", ".join(here[:4]) + (" …" if len(here) > 4 else "")
        line = say.REACHED(first=at.first, last=at.last, total=at.total, nodes=told)
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def _tell_values(console: Console, crash: Crash, run: Run, *, most: int) -> None:
    """The whole tensors that came along, how to see one, and what did not come."""
    lines = [f"{one['address']}  {one['dtype']} {list(one['shape'])}" for one in crash.values[:most]]
    if crash.values:
        if len(crash.values) > most:
            lines.append(words.MORE(count=f"{len(crash.values) - most:,}", all=len(crash.values)))
        lines.append(f"$ misstep show {shlex.quote(run.called)} {shlex.quote(str(crash.values[0]['address']))}")
    if crash.left_out:
        names = list(crash.left_out.get("first", ()))
        count = int(crash.left_out.get("tensors", len(names)))
        shown = ", ".join(names[:3]) + (" …" if count > 3 else "")
        lines.append(say.LEFT_OUT(count=count, size=size(int(crash.left_out.get("bytes", 0))), names=shown))
    _tell_lines(console, say.TITLE_VALUES(), lines)


def _tell_memory(console: Console, crash: Crash, *, most: int) -> None:
    if not crash.memory_curve and not crash.holders:
        return
    _title(console, say.TITLE_MEMORY())
    if crash.memory_curve:
        sizes = [count for _, count in crash.memory_curve]
        console.print(Text(chart([float(count) for count in sizes]), style="cyan"))
        first, last = crash.memory_curve[0][0], crash.memory_curve[-1][0]
        console.print(say.MEMORY_CURVE(low=size(min(sizes)), high=size(max(sizes)), first=first, last=last))
    if crash.holders:
        table = Table(
            box=None, padding=(0, 2, 0, 0), show_header=False, title=say.TITLE_HOLDERS(), title_justify="left"
        )
        for holder in crash.holders[:most]:
            table.add_row(
                size(int(holder.get("bytes", 0))), Text(str(holder.get("name", ""))), str(holder.get("kind", "")),
                Text(_shape(holder)),
            )  # fmt: skip
        console.print(table)


def _shape(holder: dict[str, Any]) -> str:
    count = int(holder.get("count", 1))
    kind = f"{holder.get('dtype', '')} {list(holder.get('shape', ()))}"
    return f"{say.COUNT_OF(count=count)} {kind}" if count > 1 else kind


def _tell_steps(console: Console, crash: Crash) -> None:
    losses = [value for value in crash.losses if value is not None]
    if losses:
        _title(console, words.TITLE_LOSS())
        console.print(Text(chart(losses), style="cyan"))
        console.print(words.LOSS_WENT(
            first=number(losses[0]), begin=crash.steps[0]["step"], last=number(losses[-1]), end=crash.steps[-1]["step"]
        ))  # fmt: skip
    if crash.batch:
        lines = [f"{one['dtype']} {list(one['shape'])}  {one['digest']}" for one in crash.batch]
        _tell_lines(console, say.TITLE_BATCH(), lines)


def _tell_lines(console: Console, title: str, lines: Sequence[str], *, style: str = "") -> None:
    if lines:
        _title(console, title)
        for line in lines:
            console.print(Text(f"  {line}", style=style))


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))
