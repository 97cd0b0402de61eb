"""`misstep tune stop|prune|serve`: wishes to the workers of a study, and the proxy in front of a database."""

from __future__ import annotations

import click

from misstep.cli import FAILED, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.commands.tune.look import looked_up
from misstep.cli.render.json import print_json
from misstep.cli.render.text import word_for
from misstep.sentences.cli import tune as words
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import Place, shown
from misstep.tuning.storage.shared import SharedStudy, open_study
from misstep.tuning.storage.table import Table


@define("stop", about=words.ABOUT_STOP, examples=("misstep tune stop mlp", "misstep tune stop mlp --now"))
@click.argument("study", default="last")
@option("--now", is_flag=True, text=words.HELP_NOW)
@json_option
@dir_option
def stop(study: str, *, now: bool, as_json: bool, directory: str | None) -> int:
    place, table = looked_up(study, directory)
    _shared(place, table).wish_to_stop(now=now)
    if as_json:
        print_json({"study": table.name, "now": now})
    else:
        click.echo((words.STOPPING_NOW if now else words.STOPPING)(name=table.name))
    return FINE


@define("prune", about=words.ABOUT_PRUNE, examples=("misstep tune prune mlp 7", "misstep tune prune mlp 7 9"))
@click.argument("study")
@click.argument("numbers", nargs=-1, type=int, required=True)
@json_option
@dir_option
def prune(study: str, numbers: tuple[int, ...], *, as_json: bool, directory: str | None) -> int:
    place, table = looked_up(study, directory)
    states = {trial.number: trial.shown_state for trial in table.trials}
    for number in numbers:
        state = states.get(number, "")
        if state != "running":
            shown_state = word_for(words.STATES, state) if state else "–"
            click.echo(f"misstep: {words.NOT_RUNNING(number=number, name=table.name, state=shown_state)}", err=True)
            return FAILED
    _shared(place, table).wish_to_prune(numbers)
    if as_json:
        print_json({"study": table.name, "pruned": list(numbers)})
    else:
        click.echo(words.PRUNING(numbers=", ".join(map(str, numbers)), name=table.name))
    return FINE


@define(
    "serve",
    about=words.ABOUT_SERVE,
    examples=("misstep tune serve postgresql://tuner@db/studies --host 0.0.0.0 --port 13000",),
)
@click.argument("storage")
@option("--host", default="localhost", text=words.HELP_SERVE_HOST)
@option("--port", type=int, default=13000, text=words.HELP_SERVE_PORT)
def serve(storage: str, *, host: str, port: int) -> int:
    from misstep.tuning.storage.proxy import serve as begin

    begin(storage, host, port, lambda: click.echo(words.SERVING(storage=shown(storage), host=host, port=port)))
    return FINE


def _shared(place: Place, table: Table) -> SharedStudy:
    connection = Connection(place)
    return SharedStudy(connection, open_study(connection, table.name))
