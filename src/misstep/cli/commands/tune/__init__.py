"""`misstep tune FILE` and what looks at a study: status, best, importance, stop, export, prune, serve."""

from __future__ import annotations

import importlib
from typing import Any

import click

from misstep.cli.command import Command, choose_language, show_help, summary
from misstep.sentences.cli import tune as words

_START = "misstep.cli.commands.tune.start"
_LOOK, _STEER = "misstep.cli.commands.tune.look", "misstep.cli.commands.tune.steer"
SUBCOMMANDS = {
    "status": (_LOOK, words.ABOUT_STATUS),
    "best": (_LOOK, words.ABOUT_BEST),
    "importance": (_LOOK, words.ABOUT_IMPORTANCE),
    "export": (_LOOK, words.ABOUT_EXPORT),
    "stop": (_STEER, words.ABOUT_STOP),
    "prune": (_STEER, words.ABOUT_PRUNE),
    "serve": (_STEER, words.ABOUT_SERVE),
}


class Tune(click.Group):
    """A word that is no subcommand is a study file."""

    about = words.ABOUT_TUNE
    examples = ("misstep tune study.yaml", "misstep tune --like 'python train.py'", "misstep tune status study")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        choose_language(start_command(), ctx, args)
        if args not in (["--help"], []) and (not args or args[0] not in SUBCOMMANDS):
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name == "start":
            return start_command()
        if name not in SUBCOMMANDS:
            return None
        found: click.Command = getattr(importlib.import_module(SUBCOMMANDS[name][0]), name)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        ctx.params.clear()
        return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        show_help(start_command(), ctx, formatter)
        with formatter.section(words.SUBCOMMANDS().rstrip(":：")):
            formatter.write_dl([(name, summary(about)) for name, (_, about) in SUBCOMMANDS.items()])

    def get_short_help_str(self, limit: int = 100) -> str:
        return summary(self.about)


def start_command() -> Command:
    found: Command = importlib.import_module(_START).command
    return found


command = Tune(name="tune", no_args_is_help=True)
