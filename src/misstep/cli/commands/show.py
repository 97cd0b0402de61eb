"""`misstep show [RUN] [ADDRESS]`: the story of a run, or the history of some of its tensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.checkpoint import show_checkpoint
from misstep.cli.render.dump import show_dump
from misstep.cli.render.facts import history_facts, run_facts, value_facts
from misstep.cli.render.json import print_json
from misstep.cli.render.run import tell_history, tell_story
from misstep.cli.render.text import terminal
from misstep.core.address import Address, Pattern
from misstep.core.stats import Array, TensorStats
from misstep.diagnosis.rules.silent import all_findings
from misstep.errors import AddressError, FormatError, RunNotFound, TensorUnavailable
from misstep.sentences.cli import general as words
from misstep.store.bundle.write import is_bundle
from misstep.store.checkpoint import SUFFIXES
from misstep.store.checkpoint.sharded import looks_sharded
from misstep.store.foreign.mindspore.graph_run import looks_like_graph
from misstep.store.foreign.mindspore.summary import looks_like_summary
from misstep.store.layout import is_run
from misstep.store.reading.reader import Run, open_run

_FILES = (*SUFFIXES, ".json", ".pb", ".ir", ".npy", ".zip")


@define(
    "show",
    about=words.ABOUT_SHOW,
    examples=(
        "misstep show last",
        "misstep show model.ckpt",
        "misstep show dumps/rank_0",
        "misstep show crash.zip 'encoder.0:output@412'",
        "misstep show last 'encoder.*:grad@100:200'",
        "misstep show last --json --check",
    ),
)
@click.argument("run", default="last")
@click.argument("address", required=False)
@json_option
@option("--check", is_flag=True, text=words.HELP_CHECK)
@option("--most", type=click.IntRange(min=1), default=20, metavar="N", text=words.HELP_MOST)
@dir_option
def command(run: str, address: str | None, *, as_json: bool, check: bool, most: int, directory: str | None) -> int:
    if looks_sharded(Path(run)) or (Path(run).is_file() and not _is_run_of_another_kind(Path(run))):
        return show_checkpoint(run, as_json=as_json, check=check, most=most, pattern=address)
    try:
        opened, address = _open(run, address, directory)
    except RunNotFound as unknown:
        if not Path(run).exists() and Path(run).suffix in _FILES:
            raise FormatError(f"no such file: {run}", path=run) from None
        if not looks_foreign(Path(run)):
            raise unknown
        return show_dump(run, pattern=address, as_json=as_json, check=check, most=most)
    if address is not None:
        pattern = Pattern.parse(address)
        kept, problems = kept_values(opened, pattern)
        rows = _rows(opened, pattern, kept=bool(kept))
        if as_json:
            told = history_facts(opened, address, rows)
            print_json(told | {"values": [value_facts(*one) for one in kept], "problems": problems})
        else:
            tell_history(terminal(), opened, address, rows, most=most, kept=kept)
            for problem in problems[:most]:
                click.echo(f"misstep: {problem}", err=True)
    elif as_json:
        print_json(run_facts(opened))
    else:
        tell_story(terminal(), opened, most=most)
    return DIFFERS if check and has_trouble(opened) else FINE


def _is_run_of_another_kind(path: Path) -> bool:
    return is_bundle(path) or looks_like_graph(path) or looks_like_summary(path)


def looks_foreign(path: Path) -> bool:
    """Whether something of another tool may lie there: not where runs of ours do."""
    return path.exists() and not (path.is_dir() and any(is_run(child) for child in path.iterdir()))


def kept_values(run: Run, pattern: Pattern) -> tuple[list[tuple[Address, Array]], list[str]]:
    """The whole tensors that were kept of what fits, each at the last step that can be read, and why others cannot."""
    found: dict[Address, tuple[Address, Array]] = {}
    problems = []
    for stored in reversed(run.tensors(pattern)):
        tensor = replace(stored.address, step=None)
        if tensor not in found:
            try:
                found[tensor] = stored.address, run.tensor(stored.address)
            except TensorUnavailable as error:
                problems.append(str(error))
    return list(reversed(found.values())), problems


def _rows(run: Run, pattern: Pattern, *, kept: bool) -> list[tuple[Address, TensorStats]]:
    """The statistics of what fits; values may be there without them, where the graph was cut off."""
    try:
        return run.stats(pattern)
    except AddressError:
        if not kept:
            raise
        return []


def has_trouble(run: Run) -> bool:
    """A verdict, a hit of severity error, or a finding that is more than a remark."""
    return (
        run.verdict is not None
        or any(hit.severity == "error" for hit in run.hits())
        or any(finding.severity != "info" for finding in all_findings(run))
    )


def _open(run: str, address: str | None, directory: str | None) -> tuple[Run, str | None]:
    try:
        return open_run(run, directory), address
    except RunNotFound:
        # `misstep show 'encoder.*:grad'`: no run can be called that, so it is an address in the last one.
        if address is None and any(mark in run for mark in ":*"):
            return open_run("last", directory), run
        raise
