"""A run told to a person: the first bad value and its line of code, what else was found, how the loss went."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from misstep.cli.render.report import what_was_seen
from misstep.cli.render.text import (
    BIRTHS,
    PRECISIONS,
    STATES,
    count_hits,
    count_steps,
    moment,
    number,
    verdict_sentence,
    word_for,
)
from misstep.core.address import Address
from misstep.core.finding import TensorFact, Verdict
from misstep.core.graph import Graph
from misstep.core.run import Step
from misstep.core.stats import Array, TensorStats
from misstep.core.watching.watch import Hit
from misstep.diagnosis.rules.silent import all_findings
from misstep.sentences.cli import general as words
from misstep.sentences.text import said
from misstep.store.bundle.write import can_be_recorded
from misstep.store.foreign.mindspore.graph_run import GRAPH
from misstep.store.reading.reader import Run, as_pattern
from misstep.store.reading.seen import seen_in

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}
_BARS = "▁▂▃▄▅▆▇█"
_CHART_COLUMNS = 60
_PLACES = 6


def tell_story(console: Console, run: Run, *, most: int) -> None:
    """The whole run on one screen."""
    _tell_head(console, run)
    if GRAPH in run.info.settings:
        tell_graph(console, run.graph(), most=most)
        return
    _tell_how_it_ended(console, run)
    if run.verdict is not None:
        _tell_verdict(console, run.verdict, ranks=len(run.ranks))
        _tell_where_values_are(console, run, run.verdict)
    _tell_what_was_seen(console, run)
    _tell_hits(console, run.hits(), most=most)
    for finding in all_findings(run)[:most]:
        _title(console, words.TITLE_FINDINGS())
        console.print(Text(said(finding.title), style=_COLOURS.get(finding.severity, "")))
        command = f"$ {finding.command}" if finding.command else ""
        for line in (*map(said, finding.evidence), said(finding.advice), command):
            if line:
                console.print(Padding(Text(line), (0, 0, 0, 2)))
    _tell_loss(console, run.steps())
    _tell_curves(console, run, most=most)
    _tell_scale(console, run)
    warnings = [said(str(event.facts.get("text", ""))) for event in run.events("warning")]
    _tell_lines(console, words.TITLE_WARNINGS(), warnings[:most], style="yellow")
    _tell_lines(console, words.TITLE_DAMAGE(), run.damage[:most], style="yellow")


def _tell_what_was_seen(console: Console, run: Run) -> None:
    seen = seen_in(run)
    by_severity = Counter(str(hit.severity) for hit in run.hits())
    for sentence in what_was_seen(seen, by_severity=by_severity, verdict=run.verdict is not None):
        console.print(sentence, style="green" if seen.clean else "yellow")


def tell_history(
    console: Console,
    run: Run,
    pattern: str,
    rows: Sequence[tuple[Address, TensorStats]],
    *,
    most: int,
    kept: Sequence[tuple[Address, Array]] = (),
) -> None:
    """One tensor step by step, with its values where they were kept; of several, the latest numbers of each."""
    by_tensor: dict[Address, list[tuple[int, TensorStats]]] = {}
    for where, stats in rows:
        tensor = Address(
            where.node, where.role, where.slot, None, where.rank if len(run.ranks) > 1 else None, where.call
        )
        by_tensor.setdefault(tensor, []).append((where.step or 0, stats))
    if not by_tensor:
        if not kept:
            console.print(words.NO_ROWS(address=pattern))
    elif len(by_tensor) == 1:
        ((tensor, history),) = by_tensor.items()
        console.print(Text(str(tensor), style="bold"))
        chosen = history[-most:]
        console.print(numbers_table(words.COLUMN_STEP(), ((f"{step:,}", stats) for step, stats in chosen)))
        tell_more(console, len(history), most)
    else:
        latest = ((str(tensor), history[-1][1]) for tensor, history in list(by_tensor.items())[:most])
        console.print(numbers_table(words.COLUMN_TENSOR(), latest))
        tell_more(console, len(by_tensor), most)
    if len(kept) == 1 and len(by_tensor) <= 1:
        tell_values(console, *kept[0])


def where_nonfinite(values: Array, *, most: int) -> list[tuple[int, ...]]:
    """The first places of NaN and Inf in a tensor.

    >>> where_nonfinite(np.array([[1.0, np.nan]]), most=5)
    [(0, 1)]
    """
    if values.dtype.kind in "biu":
        return []
    wide = values if values.dtype.kind == "c" else values.astype(np.float64)
    return [tuple(int(axis) for axis in place) for place in np.argwhere(~np.isfinite(wide))[:most]]


def tell_values(console: Console, address: Address, values: Array) -> None:
    """The values of one tensor, and where they are not finite."""
    _title(console, words.VALUES() if address.step is None else words.VALUES_OF(step=address.step))
    with np.printoptions(precision=5, threshold=200, edgeitems=4, linewidth=110):
        console.print(Text(str(values)))
    bad = values.size - int(np.isfinite(values.astype(np.float64)).sum()) if values.dtype.kind not in "biuc" else 0
    if not bad:
        console.print(words.ALL_FINITE(all=values.size), style="dim")
        return
    places = ", ".join(str(list(place)) for place in where_nonfinite(values, most=_PLACES))
    more = ", …" if bad > _PLACES else ""
    console.print(Text(words.NONFINITE_AT(count=bad, all=values.size, places=places + more), style="red"))


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tell_head(console: Console, run: Run) -> None:
    last = run.last_step
    head = Text(run.name, style="bold")
    facts = [word_for(STATES, run.state), count_steps(last.number if last else 0), moment(run.info.started)]
    if len(run.ranks) > 1:
        facts.append(words.RANKS(count=len(run.ranks)))
    facts += [f"{name} {version}" for name, version in run.info.frameworks.items()]
    head.append(" · " + " · ".join(facts), style="not bold")
    console.print(head)
    if run.info.command:
        console.print(Text(f"$ {shlex.join(run.info.command)}", style="dim"))
    console.print()


def _tell_how_it_ended(console: Console, run: Run) -> None:
    """Where the flight record of a bad end is; whoever opens it makes it, if nobody has."""
    if run.state not in ("lost", "failed"):
        return
    for event in run.events("exception")[-1:]:
        error = f"{event.facts.get('type', '')}: {str(event.facts.get('text', '')).strip().partition(chr(10))[0]}"
        console.print(
            Text(words.ENDED_WITH(error=error, place=str(event.facts.get("source", ""))).rstrip("；; "), style="red")
        )
    recorded = f"misstep open {shlex.quote(run.called)}" if can_be_recorded(run.path) else ""
    if run.state == "lost":
        command = f"{words.LOST_LEFT()}  {recorded}" if recorded else words.LOST_WITHOUT_RECORD()
        console.print(Text(f"{words.LOST_RUN()}; {command}", style="red"))
    elif recorded:
        console.print(Text(f"{words.HOW_IT_ENDED()}  {recorded}", style="red"))


def _tell_verdict(console: Console, verdict: Verdict, *, ranks: int) -> None:
    console.print(Text(verdict_sentence(verdict, ranks=ranks), style="bold red"))
    facts = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_column(overflow="fold")
    for title, tensors in ((words.TITLE_INPUTS(), verdict.inputs), (words.TITLE_OUTPUTS(), verdict.outputs)):
        for position, fact in enumerate(tensors):
            facts.add_row(title if position == 0 else "", Text(fact.address), Text(_described(fact)))
    if facts.row_count:
        console.print(Padding(facts, (0, 0, 0, 2)))
    precision = word_for(PRECISIONS, verdict.precision)
    for line in (precision, verdict.replayed, verdict.note):
        if line:
            console.print(Padding(Text(said(line), style="dim"), (0, 0, 0, 2)))


def _tell_where_values_are(console: Console, run: Run, verdict: Verdict) -> None:
    """How to see the values of the first tensor the verdict names whose values were kept."""
    for fact in (*verdict.outputs, *verdict.inputs):
        if run.tensors(as_pattern(Address.parse(fact.address)), rank=verdict.rank):
            line = f"$ misstep show {shlex.quote(run.called)} {shlex.quote(fact.address)}"
            console.print(Padding(Text(line), (0, 0, 0, 2)))
            return


def _described(fact: TensorFact) -> str:
    kind = f"{fact.dtype} {list(fact.shape)}" if fact.dtype else ""
    return f"{said(fact.description)}  {kind}".strip()


def _tell_hits(console: Console, hits: list[Hit], *, most: int) -> None:
    if not hits:
        return
    counts: dict[str, int] = {}
    for hit in hits:
        counts[hit.severity] = counts.get(hit.severity, 0) + 1
    _title(console, f"{words.TITLE_HITS()}: {count_hits(counts)}")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(words.COLUMN_CONDITION(), no_wrap=True)
    table.add_column(words.COLUMN_TENSOR(), overflow="fold")
    table.add_column(words.COLUMN_BIRTH(), no_wrap=True)
    table.add_column(words.COLUMN_WHY(), overflow="fold")
    # What is worst first, then in the order it happened: the line a reader needs is among the first.
    ranked = sorted(hits, key=lambda hit: (list(_COLOURS).index(hit.severity), hit.birth == "propagated"))
    for hit in ranked[:most]:
        table.add_row(
            Text(hit.condition, style=_COLOURS.get(hit.severity, "")),
            Text(str(hit.address)),
            word_for(BIRTHS, hit.birth),
            Text(said(hit.reason)),
        )
    console.print(table)
    tell_more(console, len(hits), most)


def _tell_loss(console: Console, steps: list[Step]) -> None:
    known = [(step.number, step.loss) for step in steps if step.loss is not None]
    if not known:
        return
    _title(console, words.TITLE_LOSS())
    finite = [(step, loss) for step, loss in known if math.isfinite(loss)]
    (begin, first), (end, last) = known[0], known[-1]
    text = words.LOSS_WENT(first=number(first), begin=begin, last=number(last), end=end)
    if finite:
        step, lowest = min(finite, key=lambda pair: pair[1])
        text += words.LOWEST(loss=number(lowest), step=step)
    console.print(Text(chart([loss for _, loss in known]), style="cyan"))
    console.print(Text(text))


def tell_graph(console: Console, graph: Graph, *, most: int) -> None:
    """A graph without values: how many operators of which type, and the lines they come from."""
    operators = [node for node in graph.nodes if node.kind not in ("parameter", "constant")]
    phases = Counter(node.phase for node in operators)
    told = ", ".join(f"{count:,} {phase}" for phase, count in phases.items())
    weights = sum(1 for node in graph.nodes if node.kind == "parameter")
    console.print(words.GRAPH_HOLDS(operators=f"{len(operators):,}", phases=told, weights=f"{weights:,}"))
    kinds = Counter(node.type for node in operators).most_common(most)
    console.print(Text(", ".join(f"{count:,} {kind}" for kind, count in kinds), style="dim"))
    lines = [f"{node.name}  {node.source}" for node in operators if node.source is not None]
    _tell_lines(console, words.TITLE_LINES(), lines[:most], style="")
    tell_more(console, len(lines), most)


def _tell_curves(console: Console, run: Run, *, most: int) -> None:
    """The numbers a program recorded beside its loss."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for event in run.events("scalar"):
        curves.setdefault(str(event.facts["tag"]), []).append((int(event.facts["step"]), float(event.facts["value"])))
    lines = []
    for tag, points in sorted(curves.items()):
        (begin, first), (end, last) = points[0], points[-1]
        lines.append(f"{tag}: " + words.LOSS_WENT(first=number(first), begin=begin, last=number(last), end=end))
    _tell_lines(console, words.TITLE_CURVES(), lines[:most], style="")
    tell_more(console, len(lines), most)


def _tell_scale(console: Console, run: Run) -> None:
    """How a gradient scaler fared: its scale, the updates it left out, and which operators overflowed."""
    rank = run.ranks[0] if run.ranks else None
    scaled = [(step.number, step.loss_scale) for step in run.steps(rank) if step.loss_scale is not None]
    skipped = [event.facts for event in run.events("skipped", rank)]
    if not scaled and not skipped:
        return
    _title(console, words.TITLE_SCALE())
    if scaled:
        (begin, first), (end, last) = scaled[0], scaled[-1]
        counts = {"skipped": len(skipped), "all": len(scaled) + len(skipped)}
        console.print(Text(chart([scale for _, scale in scaled]), style="cyan"))
        console.print(Text(words.SCALE_WENT(first=number(first), begin=begin, last=number(last), end=end, **counts)))
    for facts in [one for one in skipped if one.get("node")][-_PLACES:]:
        place = f"{facts['node']} ({facts.get('op', '')}) {facts.get('source', '')}"
        console.print(Padding(Text(words.SKIPPED_AT(step=facts.get("step"), place=place), style="dim"), (0, 0, 0, 2)))


def chart(values: Sequence[float], *, columns: int = _CHART_COLUMNS) -> str:
    """The course of some numbers in one line of text, '×' where one is not finite.

    >>> chart([1.0, 2.0, math.nan])
    '▁█×'
    """
    columns = min(columns, len(values))
    cuts = [values[i * len(values) // columns : (i + 1) * len(values) // columns] for i in range(columns)]
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    line = ""
    for cut in cuts:
        if not all(math.isfinite(value) for value in cut):
            line += "×"
            continue
        mean = math.fsum(value / len(cut) for value in cut)
        share = (mean / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.0
        line += _BARS[min(int(share * len(_BARS)), len(_BARS) - 1)]
    return line


def numbers_table(first_column: str, rows: Iterable[tuple[str, TensorStats]]) -> Table:
    """A line of statistics for each."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(first_column, overflow="fold")
    for title in (words.COLUMN_MEAN, words.COLUMN_STD, words.COLUMN_MIN, words.COLUMN_MAX, words.COLUMN_BAD):
        table.add_column(title(), justify="right", no_wrap=True)
    table.add_column(words.COLUMN_SHAPE(), no_wrap=True)
    for name, stats in rows:
        table.add_row(
            Text(name, style="" if stats.finite else "red"),
            number(stats.mean),
            number(stats.std) if stats.dtype != "unknown" else "",
            number(stats.min),
            number(stats.max),
            f"{stats.nonfinite:,}" if stats.nonfinite else "",
            Text(f"{stats.dtype} {list(stats.shape)}" if stats.dtype != "unknown" else ""),
        )
    return table


def _tell_lines(console: Console, title: str, lines: Sequence[str], *, style: str) -> None:
    if lines:
        _title(console, title)
        for line in lines:
            console.print(Text(line, style=style))


def tell_more(console: Console, count: int, most: int) -> None:
    """How many of a list were not shown."""
    if count > most:
        console.print(Text(words.MORE(count=f"{count - most:,}", all=count), style="dim"))


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))
