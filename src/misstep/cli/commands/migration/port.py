"""`misstep port SRC --to mindspore`: a source written anew, and checked."""

from __future__ import annotations

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.errors import MigrationError
from misstep.sentences import porting as sentences
from misstep.sentences.cli import porting as words


@define(
    "port",
    about=words.ABOUT_PORT,
    examples=(
        "misstep port model.py --to mindspore",
        "misstep port model.py:build --to mindspore --data batch.npz --out ported",
    ),
)
@click.argument("source")
@option("--to", type=click.Choice(["mindspore", "torch"]), default="mindspore", text=words.HELP_TO)
@option("--out", metavar="DIR", text=words.HELP_OUT_DIR)
@option("--data", metavar="NPZ", text=words.HELP_PORT_DATA)
@option("--calls", is_flag=True, text=words.HELP_CALLS)
@option("--no-check", "untried", is_flag=True, text=words.HELP_NO_TRY)
@json_option
def command(
    source: str, *, to: str, out: str | None, data: str | None, calls: bool, untried: bool, as_json: bool
) -> int:
    from misstep.cli.render.migration import port as render
    from misstep.migration.port.project import port_project

    if to == "torch":
        raise MigrationError(sentences.PORT_TO_TORCH.of(path=source))
    port = port_project(source, out=out, data=data, try_it=not untried)
    if as_json:
        print_json(render.as_json(port))
    else:
        render.show_port(port, spec=source, data=data, calls=calls)
    return FINE if port.fine else DIFFERS
