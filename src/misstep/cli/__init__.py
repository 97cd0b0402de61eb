"""The command line: one file a command, and the only place that prints errors and decides exit codes.

    0 fine · 1 failed · 2 wrong usage · 3 differs, or has findings

`misstep run` is the exception: its exit code is the command's own.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

import misstep.sentences.language as i18n
from misstep.cli.command import Command, Option, choose_language, help_records, summary
from misstep.cli.render.shown import guarded_streams
from misstep.errors import MisstepError, nearest
from misstep.sentences.cli import crash as crashwords
from misstep.sentences.cli import diagnose as diagnosewords
from misstep.sentences.cli import files as filewords
from misstep.sentences.cli import footprint as memorywords
from misstep.sentences.cli import general as words
from misstep.sentences.cli import graph as graphwords
from misstep.sentences.cli import lint as lintwords
from misstep.sentences.cli import live as livewords
from misstep.sentences.cli import migration as migrationwords
from misstep.sentences.cli import operators as operatorwords
from misstep.sentences.cli import performance as performancewords
from misstep.sentences.cli import porting as portingwords
from misstep.sentences.cli import replay as replaywords
from misstep.sentences.cli import tune as tunewords
from misstep.sentences.text import Text, said

FINE, FAILED, USAGE, DIFFERS = 0, 1, 2, 3

COMMANDS: dict[str, tuple[str, Text]] = {
    "run": ("misstep.cli.commands.run", words.ABOUT_RUN),
    "ls": ("misstep.cli.commands.ls", words.ABOUT_LS),
    "show": ("misstep.cli.commands.show", words.ABOUT_SHOW),
    "diagnose": ("misstep.cli.commands.diagnose", diagnosewords.ABOUT_DIAGNOSE),
    "replay": ("misstep.cli.commands.replay", replaywords.ABOUT_REPLAY),
    "open": ("misstep.cli.commands.open", crashwords.ABOUT_OPEN),
    "record": ("misstep.cli.commands.live.record", crashwords.ABOUT_RECORD),
    "env": ("misstep.cli.commands.env", words.ABOUT_ENV),
    "diff": ("misstep.cli.commands.diff", filewords.ABOUT_DIFF),
    "check": ("misstep.cli.commands.check", filewords.ABOUT_CHECK),
    "graph": ("misstep.cli.commands.graph", graphwords.ABOUT_GRAPH),
    "compare-modes": ("misstep.cli.commands.compare_modes", graphwords.ABOUT_COMPARE_MODES),
    "lint": ("misstep.cli.commands.lint", lintwords.ABOUT_LINT),
    "advise": ("misstep.cli.commands.performance.advise", performancewords.ABOUT_ADVISE),
    "memory": ("misstep.cli.commands.performance.memory", memorywords.ABOUT_MEMORY),
    "profile": ("misstep.cli.commands.performance.profile", operatorwords.ABOUT_PROFILE),
    "params": ("misstep.cli.commands.migration.params", migrationwords.ABOUT_PARAMS),
    "convert": ("misstep.cli.commands.migration.convert", migrationwords.ABOUT_CONVERT),
    "scan": ("misstep.cli.commands.migration.scan", portingwords.ABOUT_SCAN),
    "port": ("misstep.cli.commands.migration.port", portingwords.ABOUT_PORT),
    "determinism": ("misstep.cli.commands.migration.determinism", portingwords.ABOUT_DETERMINISM),
    "migrate": ("misstep.cli.commands.migration.migrate", migrationwords.ABOUT_MIGRATE),
    "data": ("misstep.cli.commands.migration.data", migrationwords.ABOUT_DATA),
    "dump": ("misstep.cli.commands.live.dump", filewords.ABOUT_DUMP),
    "export": ("misstep.cli.commands.export", filewords.ABOUT_EXPORT),
    "tune": ("misstep.cli.commands.tune", tunewords.ABOUT_TUNE),
    "ui": ("misstep.cli.commands.live.ui", livewords.ABOUT_UI),
    "debug": ("misstep.cli.commands.live.debug", livewords.ABOUT_DEBUG),
    "pause": ("misstep.cli.commands.live.control:pause", livewords.ABOUT_PAUSE),
    "step": ("misstep.cli.commands.live.control:step", livewords.ABOUT_STEP),
    "to": ("misstep.cli.commands.live.control:to", livewords.ABOUT_TO),
    "go": ("misstep.cli.commands.live.control:go", livewords.ABOUT_GO),
    "stop": ("misstep.cli.commands.live.control:stop", livewords.ABOUT_STOP),
    "watch": ("misstep.cli.commands.live.watch", livewords.ABOUT_WATCH),
    "hits": ("misstep.cli.commands.live.hits", livewords.ABOUT_HITS),
}
"""In the order of the help. A module is imported when its command is used, so that one command never costs another's
imports; it holds the command under the name `command`, unless another follows the colon."""


class Misstep(click.Group):
    """The program `misstep`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        found: Command = getattr(importlib.import_module(module), attribute or "command")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            raise click.UsageError(words.NO_COMMAND(name=args[0], nearest=nearest(args[0], COMMANDS)), ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        choose_language(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        ctx.params.clear()
        return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("  $ misstep run python train.py\n  $ misstep show last\n")
        formatter.write_paragraph()
        formatter.write_text(words.ABOUT())
        formatter.write_paragraph()
        with formatter.section(words.COMMANDS()):
            formatter.write_dl([(name, summary(about)) for name, (_, about) in COMMANDS.items()])
        with formatter.section(words.OPTIONS()):
            formatter.write_dl(help_records(self, ctx))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    with guarded_streams():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    i18n.choose(None)
    try:
        code = _program().main(
            list(sys.argv[1:] if arguments is None else arguments), prog_name="misstep", standalone_mode=False
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else FINE
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return USAGE
    except click.UsageError as error:
        hint = f"\n{words.TRY_HELP(command=error.ctx.command_path)}" if error.ctx is not None else ""
        return _complain(error.format_message() + hint, USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), FAILED)
    except MisstepError as error:
        return _complain(said(str(error)), FAILED)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # `misstep show | head`: the reader has had enough. Without this, Python complains again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _program() -> Misstep:
    version = Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
        text=words.HELP_VERSION,
    )
    lang = Option(["--lang"], type=click.Choice(i18n.LANGUAGES), text=words.HELP_LANG)
    return Misstep(name="misstep", params=[lang, version], no_args_is_help=True)


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from misstep import __version__

        click.echo(f"misstep {__version__}")
        ctx.exit(FINE)


def _complain(message: str, code: int) -> int:
    click.echo(f"misstep: {message}", err=True)
    return code
