"""`misstep export THING`: stored tensors in another program's format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import option
from misstep.sentences.cli import files as filewords

if TYPE_CHECKING:
    from misstep.capture.keep.mindspore_config import DumpConfig
    from misstep.core.address import Address
    from misstep.store.foreign.source import TensorSource

_MOST_PROBLEMS = 5
_ENDINGS = {"npz": ".npz", "safetensors": ".safetensors", "ckpt": ".ckpt", "pth": ".pth", "parquet": ".parquet"}


@define(
    "export",
    about=filewords.ABOUT_EXPORT,
    examples=(
        "misstep export last@120 --format npy --to arrays",
        "misstep export model.pth --format ckpt --to model.ckpt",
        "misstep export model.ckpt --format pth --to model.pth",
    ),
)
@click.argument("thing", default="last")
@option("--format", "kind", default="npy", show_default=True, text=filewords.HELP_FORMAT)
@option("--to", "where", metavar="PATH", text=filewords.HELP_TO)
def command(*, thing: str, kind: str, where: str | None) -> int:
    from misstep.store.boundary import plain_name
    from misstep.store.foreign.export import export
    from misstep.store.foreign.mindspore.layout import write_mindspore_dump
    from misstep.store.foreign.sniff import source_of
    from misstep.store.foreign.source import readable

    configured = _configured(thing) if kind == "mindspore" else None
    source = source_of(thing) if configured is None else _chosen(thing, configured)
    missing: list[str] = []
    if configured is None or configured.spec.saved != "statistic":
        source, missing = readable(source)
    # A run may come from somebody else: where it wanted its dump is taken only when it is a name right here.
    own = configured.path if configured and plain_name(configured.path) else ""
    path = where or own or f"misstep-export{_ENDINGS.get(kind, '')}"
    if configured is None:
        export(source, path, format=kind)
    else:
        write_mindspore_dump(
            source,
            path,
            net_name=configured.net_name,
            saved=configured.spec.saved,
            statistics=configured.statistics,
            first_iteration=configured.first_iteration,
            config=configured.plain,
        )
    click.echo(filewords.WROTE(path=path))
    if configured and not where and not own:
        click.echo(f"misstep: {filewords.CONFIGURED_ELSEWHERE(path=configured.path)}", err=True)
    for problem in missing[:_MOST_PROBLEMS]:
        click.echo(f"misstep: {problem}", err=True)
    if missing:
        click.echo(f"misstep: {filewords.NOT_WRITTEN(count=len(missing))}", err=True)
    return DIFFERS if missing else FINE


def _configured(thing: str) -> DumpConfig | None:
    """The dump configuration a run was recorded with; None without one."""
    from misstep.capture.keep.mindspore_config import dump_config
    from misstep.errors import MisstepError
    from misstep.store.reading.reader import open_run

    try:
        dumps = open_run(thing.partition("@")[0].partition("#")[0]).events("dump")
    except MisstepError:
        return None
    return next((dump_config(event.facts["config"]) for event in dumps if "config" in event.facts), None)


def _chosen(thing: str, configured: DumpConfig) -> TensorSource:
    """What the configuration asked for: whole tensors, or the statistics where it wanted no more."""
    from misstep.store.foreign.own_run import RowSource
    from misstep.store.foreign.sniff import source_of
    from misstep.store.foreign.source import Selected
    from misstep.store.reading.reader import open_run

    spec = configured.spec

    def asked(address: Address, node_type: str) -> bool:
        return spec.includes(address.step or 0) and spec.on_rank(address.rank or 0) and spec.fits(address, node_type)

    if spec.saved == "statistic":
        return RowSource(open_run(thing.partition("@")[0].partition("#")[0]).path, asked)
    source = source_of(thing)
    return Selected(source, [entry for entry in source.entries() if asked(entry.address, entry.node_type)])
