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
    from misstep.store.foreign.export import export
    from misstep.store.foreign.sniff import source_of

    path = export(source_of(thing), where or f"misstep-export{_ENDINGS.get(kind, '')}", format=kind)
    click.echo(filewords.WROTE(path=path))
