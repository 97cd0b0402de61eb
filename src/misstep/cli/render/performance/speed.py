"""How a speed report looks in a terminal: the step and the verdict, what to change, and what is not known."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from misstep.cli.render.json import plain
from misstep.performance.buckets import BucketReport
from misstep.performance.pipeline import Pipeline
from misstep.performance.report import SpeedReport
from misstep.performance.rules import Advice
from misstep.performance.segmentation import MB
from misstep.performance.steps import StepTimes
from misstep.performance.trial import Trial
from misstep.sentences.cli import performance as words
from misstep.sentences.speed import advice as facts
from misstep.sentences.text import said

_SMALLEST = 0.005
_MOST_STAGES = 8
_MOST_OUTLIERS = 5


def tell_report(console: Console, report: SpeedReport, *, hint: bool = True) -> None:
    for times in report.times:
        _tell_step(console, times, several=len(report.times) > 1)
    console.print(
        words.VERDICT(bound=facts.VERDICTS[report.verdict.bound](), why=said(report.verdict.why)), style="bold"
    )
    if report.pipeline is not None:
        _tell_pipeline(console, report.pipeline, report.times)
    if report.load is not None:
        console.print(
            "  " + words.MACHINE(own=report.load.own, allowed=report.load.allowed, others=report.load.external)
        )
    _tell_predictions(console, report)
    if report.nothing is not None:
        console.print(said(report.nothing), style="bold")
    if report.advice:
        console.print(words.ADVICE(), style="bold")
        for advice in report.advice:
            _tell_advice(console, advice)
    for sentence in report.unknown:
        console.print("  " + words.NOT_MEASURED(what=said(sentence)), style="dim")
    if hint and any(one.change is not None for one in report.advice):
        console.print(words.APPLY_HINT(run=report.run))


def tell_trial(console: Console, trial: Trial) -> None:
    """What a change measured, beside what was predicted."""
    predicted = words.AGAINST(ms=trial.predicted) if trial.predicted is not None else ""
    if trial.expected is not None:
        predicted += words.AS_BUSY(ms=trial.expected)
    console.print(f"{trial.name}: {said(trial.outcome)}{predicted}", style="bold", markup=False)
    if trial.line is not None:
        console.print("  " + facts.KEEP(where=said(trial.line)), markup=False)


def tell_buckets(console: Console, found: BucketReport) -> None:
    """How gradients are cut into all-reduces now, and how they best were."""
    console.print(
        words.BUCKETS(
            gradients=found.gradients,
            mb=found.bytes / MB,
            ranks=found.ranks,
            latency=found.wire.latency,
            rate=1e3 / found.wire.per_byte / MB if found.wire.per_byte else float("inf"),
            backward=found.backward,
            now=found.default.end,
            best=found.best.end,
        )
    )
    console.print(said(found.said), style="bold")
    if found.change is not None:
        console.print(
            "  " + words.BUCKET_LINES(caps=str(list(found.caps_mb)), fusion=str(list(found.fusion))), markup=False
        )


def report_facts(report: SpeedReport) -> dict[str, Any]:
    """For --json: everything, but not every batch's time."""
    told: dict[str, Any] = plain(report)
    if told["pipeline"] is not None:
        del told["pipeline"]["times"]
    return told


def _tell_step(console: Console, times: StepTimes, *, several: bool) -> None:
    parts = [
        words.PART(name=facts.SEGMENTS[name](), share=times.share(name))
        for name in times.parts
        if name != "misstep" and times.share(name) >= _SMALLEST
    ]
    rank = words.OF_RANK(rank=times.rank) if several else ""
    console.print(rank + words.STEP_LINE(ms=times.bare, parts=parts), style="bold")
    told = [
        words.SPREAD(p50=times.p50, p90=times.p90, p99=times.p99, steady=times.steady, steps=times.steps),
        words.FIRST(first=times.first_ms, compile=times.compile_ms),
    ]
    if times.epochs > 1:
        told.append(words.EPOCHS(epochs=times.epochs, ms=times.epoch_ms))
    if times.own > 0.02 * times.mean:
        told.append(words.OWN(ms=times.own))
    if times.outliers:
        worst = sorted(times.outliers, key=lambda one: -one.ms)[:_MOST_OUTLIERS]
        named = [words.OUTLIER(step=one.step, ms=one.ms, segment=facts.SEGMENTS[one.segment]()) for one in worst]
        told.append(words.OUTLIERS(steps=named))
    for line in told:
        console.print("  " + line)


def _tell_pipeline(console: Console, pipeline: Pipeline, times: tuple[StepTimes, ...]) -> None:
    loader, source = pipeline.loader, pipeline.loader.get("source")
    line = f"{source['file']}:{source['line']}" if source else ""
    console.print(
        "  "
        + words.LOADER(dataset=loader["dataset"], workers=pipeline.workers, batch=loader.get("batch_size"), line=line)
    )
    console.print("  " + words.MAKING(make=pipeline.make, cpu=pipeline.cpu, sample=pipeline.sample_ms))
    slowest = max(times, key=lambda one: one.bare)
    if slowest.empty is not None:
        console.print("  " + words.QUEUE(queue=slowest.queue or 0.0, empty=slowest.empty))
    for stage in pipeline.stages[:_MOST_STAGES]:
        console.print(f"    {'  ' * stage.depth}{stage.name}  {stage.share:.0%}  {stage.ms:.3f} ms  {stage.where}")


def _tell_predictions(console: Console, report: SpeedReport) -> None:
    if not report.predictions or report.pipeline is None:
        return
    pipeline = report.pipeline
    table = Table(box=None, padding=(0, 2, 0, 2), title=words.PREDICTIONS(), title_justify="left")
    for name in ("num_workers", "prefetch_factor", "batch_size", "ms", "", ""):
        table.add_column(name, justify="right")
    batch = pipeline.loader.get("batch_size") or pipeline.samples
    for one in report.predictions:
        now = (
            one.workers == pipeline.workers
            and one.batch == 1
            and one.prefetch == (pipeline.loader.get("prefetch_factor") or 2)
        )
        table.add_row(
            str(one.workers),
            str(one.prefetch) if one.workers else "",
            str(max(1, round(batch * one.batch))),
            f"{one.ms:.2f}",
            f"{one.low:.2f} … {one.high:.2f}",
            words.NOW() if now else "",
        )
    console.print(table)


def _tell_advice(console: Console, advice: Advice) -> None:
    console.print(f"  • {said(advice.what)}" + (f"  {advice.where}" if advice.where else ""))
    console.print(f"    {said(advice.why)}  [{said(advice.threshold)}]", markup=False)
    if advice.predicted is not None and advice.low is not None and advice.high is not None:
        console.print("    " + words.PREDICTED(ms=advice.predicted, low=advice.low, high=advice.high))
