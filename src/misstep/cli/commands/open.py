"""`misstep open BUNDLE`: a flight record told to a person, on a machine that has nothing else of the run."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import click

import misstep.sentences.language as i18n
from misstep.cli import FINE
from misstep.cli.browser import open_page
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.commands.live.record import record_of
from misstep.cli.commands.show import looks_foreign
from misstep.cli.render.checkpoint import show_checkpoint
from misstep.cli.render.crash import tell_crash, three_lines
from misstep.cli.render.dump import show_dump, tell_commands
from misstep.cli.render.facts import run_facts
from misstep.cli.render.json import print_json
from misstep.cli.render.run import tell_story
from misstep.cli.render.text import terminal
from misstep.diagnosis.crash.explain import explain
from misstep.errors import FormatError, RunNotFound, need
from misstep.sentences.cli import crash as crashwords
from misstep.store.atomic import copy_file
from misstep.store.bundle.open import open_bundle
from misstep.store.bundle.write import RECORDS, is_bundle
from misstep.store.foreign.mindspore.graph_run import GRAPH
from misstep.store.layout import is_run
from misstep.store.reading.reader import open_run


@define(
    "open",
    about=crashwords.ABOUT_OPEN,
    examples=("misstep open crash.zip", "misstep open crash.zip --ui", "misstep open last", "misstep open last --json"),
)
@click.argument("bundle", default="last")
@json_option
@option("--ui", "page", is_flag=True, text=crashwords.HELP_UI)
@option("--full", is_flag=True, text=crashwords.HELP_FULL)
@option("--most", type=click.IntRange(min=1), default=12, metavar="N", text=crashwords.HELP_MOST)
@dir_option
def command(bundle: str, *, as_json: bool, page: bool, full: bool, most: int, directory: str | None) -> int:
    path = Path(bundle)
    if path.is_file() and is_bundle(path):
        if page:
            return _serve(path)
        return _open(path, as_json=as_json, full=full, most=most)
    try:
        run = open_run(bundle, directory)
    except RunNotFound:
        if not looks_foreign(path):
            raise
        if path.is_file():
            return show_checkpoint(bundle, as_json=as_json, check=False, most=most, pattern=None)
        return show_dump(bundle, pattern=None, as_json=as_json, check=False, most=most)
    record = record_of(run)
    if record is not None and page:
        return _serve(record)
    if record is not None:
        return _open(record, as_json=as_json, full=full, most=most)
    if page:
        raise FormatError(f"{run.name} has no flight record; make one:  misstep record {run.name}", path=str(run.path))
    if as_json:
        print_json(run_facts(run))
    else:
        tell_story(terminal(), run, most=most)
        if path.exists() and not is_run(path) and GRAPH not in run.info.settings:  # a summary of MindSpore
            tell_commands(terminal(), run.called, next((str(one.address) for one in run.tensors()), ""))
    return FINE


def _open(path: Path, *, as_json: bool, full: bool, most: int) -> int:
    with open_bundle(path) as bundle:
        crash = explain(bundle)
        if as_json:
            causes = [
                {"id": cause.id, "found_in": cause.found_in, "matched": cause.matched}
                | {"title": words.title, "why": words.why, "try": words.advice}
                for cause in crash.causes
                for words in (cause.words(i18n.language()),)
            ]
            facts = {name: getattr(crash, name) for name in crash.__dataclass_fields__}
            story = {"bundle": str(path.absolute()), "summary": three_lines(crash), **facts, "causes": causes}
            print_json({**story, "of_run": run_facts(bundle.run)})
        else:
            bundle.run.called = str(path)
            tell_crash(terminal(), crash, bundle.run, full=full, most=most)
    return FINE


def _serve(path: Path) -> int:
    """The crash page in a browser, of the bundle alone, until Ctrl-C."""
    need("uvicorn", "for the web interface", extra="ui")
    from misstep.hub.server import start_hub

    with open_bundle(path) as bundle:
        # Unpacked it is a run directory, and the hub finds the record where a run keeps its own.
        records = bundle.run.path / RECORDS
        records.mkdir()
        copy_file(path, records / f"{bundle.kind}.zip")
        with start_hub(bundle.run.path.parent) as hub:
            page = f"{hub.url}/runs/{quote(bundle.run.name)}/crash/{quote(bundle.kind)}#token={hub.token}"
            click.echo(crashwords.SERVING(page=page))
            open_page(page)
            try:
                hub.wait()
            except KeyboardInterrupt:
                pass
    return FINE
