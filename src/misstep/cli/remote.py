"""What the one-shot commands (pause, step, to, go, stop, watch) share: a debugger for one command and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from misstep.cli.command import dir_option, json_option, option
from misstep.client import Debugger, connect
from misstep.sentences.cli import live as livewords


@contextmanager
def debugger_for(run: str, directory: str | None) -> Iterator[Debugger]:
    debugger = connect(run, directory=directory)
    try:
        yield debugger
    finally:
        debugger.close()


def live_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--json, --dir, --rank and the run, which is the last one unless named."""
    for add in (json_option, dir_option, option("--rank", type=int, text=livewords.HELP_RANK)):
        function = add(function)
    return function


def wait_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return option("--wait/--no-wait", default=True, text=livewords.HELP_WAIT)(function)


def move(
    run: str, directory: str | None, op: str, *, rank: int | None, as_json: bool, wait: bool = False, **arguments: Any
) -> None:
    """Send one command, wait for its end when that is wanted, and say where the run stands."""
    from misstep.cli.prompt import where

    with debugger_for(run, directory) as debugger:
        debugger.command(op, rev=None, rank=rank, **arguments)
        if wait:
            debugger.wait("paused", "ended", "lost", "detached", seconds=24 * 3600.0)
        state = debugger.state
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(state), ensure_ascii=False))
    else:
        click.echo(where(state))
