"""`misstep ui`: the dashboard over a folder of runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import click

from misstep.cli.browser import open_page
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, option
from misstep.cli.demo import runs
from misstep.errors import need
from misstep.sentences.cli import live as words
from misstep.settings import Settings


@define(
    "ui",
    about=words.ABOUT_UI,
    examples=(
        "misstep ui",
        "misstep ui --demo --open",
        "misstep ui dumps/rank_0",
        "misstep ui before.ckpt after.pth --open",
        "misstep ui --dir /data/missteps --port 8080 --open",
    ),
)
@click.argument("things", nargs=-1, type=click.Path(exists=True, path_type=Path))
@dir_option
@option("--host", default="127.0.0.1", text=words.HELP_HOST)
@option("--port", type=int, default=0, text=words.HELP_PORT)
@option("--link-port", type=int, default=0, text=words.HELP_LINK_PORT)
@option("--expose", is_flag=True, text=words.HELP_EXPOSE)
@option("--answer-to", "names", multiple=True, metavar="NAME", text=words.HELP_NAMES)
@option("--prefix", default="", text=words.HELP_PREFIX)
@option("--idle", type=float, default=0.0, metavar="SECONDS", text=words.HELP_IDLE)
@option("--demo", is_flag=True, text=words.HELP_DEMO)
@option("--open", "show", is_flag=True, text=words.HELP_OPEN)
@option("-q", "--quiet", is_flag=True, text=words.HELP_QUIET)
def command(
    things: tuple[Path, ...],
    *,
    directory: str | None,
    host: str,
    port: int,
    link_port: int,
    expose: bool,
    names: tuple[str, ...],
    prefix: str,
    idle: float,
    demo: bool,
    show: bool,
    quiet: bool,
) -> None:
    need("uvicorn", "for the web interface", extra="ui")
    from misstep.hub.server import start_hub, warn_exposed

    if demo:
        directory = directory or str(runs.FOLDER)
        runs.make_demo(Path(directory), (lambda _: None) if quiet else click.echo)
    as_run = folder_of_run(things[0]) if len(things) == 1 and directory is None else None
    folder = as_run or Path(directory or Settings.load().dir)
    things = () if as_run else things
    folder.mkdir(parents=True, exist_ok=True)
    hub = start_hub(
        folder,
        host=host,
        port=port,
        link_port=link_port,
        expose=expose,
        names=names,
        prefix=prefix,
        idle_seconds=idle,
        things=things,
    )
    first = f"runs/{runs.SHOWN}/debug" if demo else first_page(things)
    page = hub.page.replace("/#", f"/{first}#", 1)
    if expose:
        warn_exposed(hub.url)
    if not quiet:
        click.echo(words.SERVING(page=page))
    if show:
        open_page(page)
    try:
        hub.wait()
    except KeyboardInterrupt:
        hub.stop()


def folder_of_run(thing: Path) -> Path | None:
    """A summary folder or a graph file of MindSpore is a run: the folder in which it is one. None for anything else."""
    from misstep.store.foreign.mindspore.graph_run import graph_run, looks_like_graph
    from misstep.store.foreign.mindspore.summary import looks_like_summary

    if thing.is_dir() and looks_like_summary(thing):
        return thing
    return graph_run(thing).parent if looks_like_graph(thing) else None


def first_page(things: tuple[Path, ...]) -> str:
    """Where the link leads: to the one thing given, to two side by side, else to the runs."""
    from misstep.hub.answers.held.things import named

    found = named(things)
    names = [quote(one.name, safe="/") for one in found]
    files = bool(found) and all(one.kind == "checkpoint" for one in found)
    if len(found) == 2:
        return f"{'ckpt' if files else 'compare/dumps'}?a={names[0]}&b={names[1]}"
    if len(found) != 1 or not found[0].format:
        return "dumps" if found else ""
    return f"ckpt?a={names[0]}" if files else f"dumps?of={names[0]}"
