"""`misstep memory COMMAND`: what a training needs before it runs; `misstep memory RUN`: what one held."""

from __future__ import annotations

import re

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.json import plain, print_json
from misstep.cli.render.performance.footprint import tell_fit, tell_footprint, tell_resident
from misstep.cli.render.text import terminal
from misstep.errors import RunError
from misstep.performance.footprint import SECONDS, Footprint, largest_batch, memory_limit, rehearse
from misstep.performance.resident import resident_memory
from misstep.sentences.cli import footprint as words
from misstep.store.reading.reader import Run, open_run

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


@define(
    "memory",
    about=words.ABOUT_MEMORY,
    examples=(
        "misstep memory python train.py",
        "misstep memory --batch 256 --limit 8GiB python train.py",
        "misstep memory --largest --limit 8GiB python train.py",
        "misstep memory last",
    ),
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
@option("--batch", type=click.IntRange(min=1), text=words.HELP_BATCH)
@option("--limit", metavar="SIZE", text=words.HELP_LIMIT)
@option("--largest", is_flag=True, text=words.HELP_LARGEST)
@option("--measure", is_flag=True, text=words.HELP_MEASURE)
@option("--seconds", type=click.FloatRange(min=1), default=SECONDS, text=words.HELP_SECONDS)
@json_option
@dir_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    command: tuple[str, ...],
    *,
    batch: int | None,
    limit: str | None,
    largest: bool,
    measure: bool,
    seconds: float,
    as_json: bool,
    directory: str | None,
) -> int:
    run = _run(command or ("last",), directory)
    if run is not None:
        held = resident_memory(run)
        if as_json:
            print_json({"run": run.name, "ranks": held})
        else:
            tell_resident(terminal(), run.name, held)
        return FINE
    most = _bytes(limit) if limit else memory_limit()

    def again(size: int | None) -> Footprint:
        if not as_json and largest:
            click.echo("  " + words.REHEARSING(batch=size or "–"), err=True)
        return rehearse(command, batch=size, fake=not measure, seconds=seconds)

    found = again(batch)
    fits = largest_batch(found, most, again) if largest else None
    if as_json:
        told = {"footprint": found, "limit": most, "fits": found.peak <= most}
        print_json(told | ({"largest": plain(fits)} if largest else {}))
    else:
        tell_footprint(terminal(), found)
        tell_fit(terminal(), found, most, fits, asked=largest)
    return FINE if found.peak <= most else DIFFERS


def _run(given: tuple[str, ...], directory: str | None) -> Run | None:
    """The run that is meant, when it is no command."""
    if len(given) != 1:
        return None
    try:
        return open_run(given[0], directory)
    except RunError:
        if given[0] == "last":
            raise
        return None


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise click.UsageError(words.BAD_SIZE(given=text), click.get_current_context())
    return int(float(found[1]) * 1024 ** (" kmgt".index(found[2].lower() or " ")))
