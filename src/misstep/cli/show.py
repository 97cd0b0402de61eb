"""`misstep show [RUN] [ADDRESS]`: the story of a run, or the history of some of its tensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from misstep.cli import DIFFERS, FINE, words
from misstep.cli.checkpoint import show_checkpoint
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.dumpstory import show_dump
from misstep.cli.json import print_json
from misstep.cli.render import terminal
from misstep.cli.story import tell_history, tell_story, where_nonfinite
from misstep.core.address import Address, Pattern
from misstep.core.stats import Array, TensorStats
from misstep.diagnosis.silent import all_findings
from misstep.errors import AddressError, RunNotFound, TensorUnavailable
from misstep.store.bundle import is_bundle
from misstep.store.foreign.graph_run import looks_like_graph
from misstep.store.layout import is_run
from misstep.store.reader import Run, open_run

_MOST_VALUES = 4096
_MOST_PLACES = 1000


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
    if Path(run).is_file() and not is_bundle(Path(run)) and not looks_like_graph(Path(run)):
        return show_checkpoint(run, as_json=as_json, check=check, most=most, pattern=address)
    try:
        opened, address = _open(run, address, directory)
    except RunNotFound:
        if not looks_foreign(Path(run)):
            raise
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


def looks_foreign(path: Path) -> bool:
    """Whether something of another tool may lie there: not where runs of ours do."""
    return path.exists() and not (path.is_dir() and any(is_run(child) for child in path.iterdir()))


def run_facts(run: Run) -> dict[str, Any]:
    """Everything the journals of a run tell, for a program to read."""
    return {
        "run": run.name,
        "path": str(run.path.absolute()),
        "state": run.state,
        "verdict": run.verdict,
        "verdicts": run.verdicts,
        "hits": run.hits(),
        "findings": all_findings(run),
        "watchpoints": run.watchpoints,
        "steps": [{"rank": rank, **_fields(step)} for rank in run.ranks for step in run.steps(rank)],
        "skipped": [{"rank": event.rank, **event.facts} for event in run.events("skipped")],
        "last_step": run.last_step,
        "ranks": run.ranks,
        "command": run.info.command,
        "started": run.info.started,
        "host": run.info.host,
        "versions": run.info.versions,
        "git": run.info.git,
        "settings": run.info.settings,
        "world_size": run.info.world_size,
        "warnings": [event.facts for event in run.events("warning")],
        "lost": run.lost,
        "damage": run.damage,
    }


def history_facts(run: Run, address: str, rows: list[tuple[Address, TensorStats]]) -> dict[str, Any]:
    """The statistics of every tensor that fits, by tensor, step by step."""
    tensors: dict[str, list[dict[str, Any]]] = {}
    for where, stats in rows:
        name = str(Address(where.node, where.role, where.slot, None, where.rank, where.call))
        tensors.setdefault(name, []).append({"step": where.step, **_fields(stats)})
    return {
        "run": run.name,
        "pattern": address,
        "tensors": [{"address": name, "history": history} for name, history in tensors.items()],
    }


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


def value_facts(address: Address, values: Array) -> dict[str, Any]:
    """A kept tensor for a program to read: the values while they are few, and where they are not finite."""
    bad = where_nonfinite(values, most=_MOST_PLACES)
    told = {"address": str(address), "dtype": values.dtype.name, "shape": values.shape, "nonfinite": bad}
    if values.size <= _MOST_VALUES:
        told["values"] = values.astype(np.float64).tolist() if values.dtype.kind != "c" else values.tolist()
    return told


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


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
