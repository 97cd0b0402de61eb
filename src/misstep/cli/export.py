"""`misstep export THING`: stored tensors in another program's format."""

from __future__ import annotations

import click

from misstep.cli import filewords
from misstep.cli.command import command as define
from misstep.cli.command import option

_ENDINGS = {"npz": ".npz", "safetensors": ".safetensors", "ckpt": ".ckpt", "parquet": ".parquet"}


@define(
    "export",
    about=filewords.ABOUT_EXPORT,
    examples=(
        "misstep export last@120 --format npy --to arrays",
        "misstep export model.pth --format ckpt --to model.ckpt",
    ),
)
@click.argument("thing", default="last")
@option("--format", "kind", default="npy", show_default=True, text=filewords.HELP_FORMAT)
@option("--to", "where", metavar="PATH", text=filewords.HELP_TO)
def command(*, thing: str, kind: str, where: str | None) -> None:
    from misstep.store.foreign.export import export, write_mindspore_dump
    from misstep.store.foreign.sniff import source_of

    source = source_of(thing)
    configured = _configured(thing) if kind == "mindspore" else {}
    path = where or configured.get("path") or f"misstep-export{_ENDINGS.get(kind, '')}"
    if configured:
        write_mindspore_dump(source, path, net_name=configured["net_name"])
    else:
        export(source, path, format=kind)
    click.echo(filewords.WROTE(path=path))


def _configured(thing: str) -> dict[str, str]:
    """Path and network's name of the dump configuration a run was recorded with; empty without one."""
    from misstep.errors import MisstepError
    from misstep.store.reader import open_run

    try:
        dumps = open_run(thing.partition("@")[0].partition("#")[0]).events("dump")
    except MisstepError:
        return {}
    return next(({"path": e.facts["path"], "net_name": e.facts["net_name"]} for e in dumps if "path" in e.facts), {})
