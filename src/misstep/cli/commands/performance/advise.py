"""`misstep advise RUN`: where the time of a step goes, and what to change; `--apply` measures it."""

from __future__ import annotations

import click

from misstep.cli import FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.json import plain, print_json
from misstep.cli.render.performance.speed import report_facts, tell_buckets, tell_report, tell_trial
from misstep.cli.render.text import terminal
from misstep.errors import PerformanceError
from misstep.performance import trial as trials
from misstep.performance.buckets import bucket_report
from misstep.performance.changes import Change
from misstep.performance.report import SpeedReport, speed_report
from misstep.performance.rules import loader_place
from misstep.sentences.cli import performance as words
from misstep.store.reading.reader import Run, open_run

_OF_LOADERS = ("num_workers", "prefetch_factor", "persistent_workers", "num_parallel_workers")
_KNOBS = ("fused", "foreach", "autocast", "channels_last", "compile", "mode", "jit_level", "sink")


@define(
    "advise",
    about=words.ABOUT_ADVISE,
    examples=(
        "misstep advise last",
        "misstep advise last --apply",
        "misstep advise last --try autocast=bfloat16 --try OMP_NUM_THREADS=1",
    ),
)
@click.argument("run", default="last")
@option("--apply", "apply", is_flag=True, text=words.HELP_APPLY)
@option("--try", "given", multiple=True, metavar="NAME=VALUE", text=words.HELP_TRY)
@option("--buckets", is_flag=True, text=words.HELP_BUCKETS)
@option("--steps", type=click.IntRange(min=12), default=trials.STEPS, text=words.HELP_TRIAL_STEPS)
@option("--seconds", type=click.FloatRange(min=1), default=trials.SECONDS, text=words.HELP_TRIAL_SECONDS)
@option("--pairs", type=click.IntRange(min=1), default=trials.PAIRS, text=words.HELP_PAIRS)
@json_option
@dir_option
def command(
    run: str,
    *,
    apply: bool,
    given: tuple[str, ...],
    buckets: bool,
    steps: int,
    seconds: float,
    pairs: int,
    as_json: bool,
    directory: str | None,
) -> int:
    opened = open_run(run, directory)
    report = speed_report(opened)
    wanted: list[tuple[Change, float | None]] = [(_change(one, report), None) for one in given]
    if not as_json:
        tell_report(terminal(), report, hint=not (apply or given or buckets))
    if apply:
        wanted = [(one.change, one.predicted) for one in report.advice if one.change is not None] + wanted
        if not wanted and not buckets:
            click.echo(words.NOTHING_TO_TRY(), err=True)
    found = bucket_report(opened, seconds=seconds) if buckets else None
    if found is not None:
        if not as_json:
            tell_buckets(terminal(), found)
        if found.change is not None:
            wanted.append((found.change, found.predicted))
    made = []
    for change, predicted in wanted:
        result = _try(opened, change, predicted, steps=steps, seconds=seconds, pairs=pairs, quiet=as_json)
        made.append(result)
        if not as_json:
            tell_trial(terminal(), result)
    if as_json:
        more = {"trials": plain(made)} if apply or given or buckets else {}
        print_json(report_facts(report) | more | ({"buckets": plain(found)} if buckets else {}))
    return FINE


def _try(
    run: Run, change: Change, predicted: float | None, *, steps: int, seconds: float, pairs: int, quiet: bool
) -> trials.Trial:
    if not quiet:
        click.echo(
            words.TRIAL_BEGINS(name=change.name, pairs=pairs, steps=steps, folder=run.info.directory or "."), err=True
        )

    def progress(number: int, total: int) -> None:
        if not quiet:
            click.echo("  " + words.TRIAL_RUNS(name=change.name, number=number, total=total), err=True)

    return trials.try_change(
        run, change, predicted=predicted, steps=steps, seconds=seconds, pairs=pairs, progress=progress
    )


def _change(given: str, report: SpeedReport) -> Change:
    """What --try NAME=VALUE means."""
    name, equals, text = given.partition("=")
    if not equals or not (name in _OF_LOADERS or name in _KNOBS or name.isupper()):
        raise click.UsageError(words.BAD_TRY(given=given, names=[*_OF_LOADERS, *_KNOBS]), click.get_current_context())
    value: object = int(text) if text.isdigit() else {"True": True, "False": False}.get(text, text)
    if name in _OF_LOADERS:
        if report.loader is None:
            raise PerformanceError(words.NO_LOADER_TO_TRY.of(given=given, run=report.run))
        return Change("loader", {name: value}, {name: report.loader.get(name)}, loader_place(report.loader))
    return Change("knob" if name in _KNOBS else "environment", {name: value if name in _KNOBS else text})
