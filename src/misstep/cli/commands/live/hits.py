"""`misstep hits RUN`: what the watchpoints found, of a live or a finished run; needs no hub."""

from __future__ import annotations

import json

import click
import msgspec

from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.protocol.views import hit_view
from misstep.sentences.cli import live as words
from misstep.store.reading.reader import open_run


@define("hits", about=words.ABOUT_HITS, examples=("misstep hits last", "misstep hits last --limit 5 --json"))
@click.argument("run", default="last")
@option("--limit", type=int, default=50, text=words.HELP_LIMIT)
@json_option
@dir_option
def command(run: str, *, limit: int, as_json: bool, directory: str | None) -> None:
    from misstep.cli.prompt import hit_line

    hits = [hit_view(hit) for hit in open_run(run, directory).hits()]
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(hits[:limit]), ensure_ascii=False))
        return
    for hit in hits[:limit]:
        click.echo(hit_line(hit))
    if not hits:
        click.echo(words.NO_HITS())
