"""What every command of misstep shares: help that begins with an example, in two languages, `--json` and `--lang`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

import misstep.sentences.language as i18n
from misstep.sentences.cli import general as words
from misstep.sentences.text import Text


class Option(click.Option):
    """An option whose help is written in both languages."""

    def __init__(self, *args: Any, text: Text, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.text = text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self.text()
        return super().get_help_record(ctx)


class Command(click.Command):
    """A command whose help begins with what a user would type."""

    def __init__(self, name: str, *, about: Text, examples: Sequence[str], **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.about = about
        self.examples = tuple(examples)
        self.params.append(Option(["--lang"], type=click.Choice(i18n.LANGUAGES), text=words.HELP_LANG))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        choose_language(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        ctx.params.pop("lang", None)
        return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        show_help(self, ctx, formatter)

    def get_short_help_str(self, limit: int = 100) -> str:
        return summary(self.about)


def command(
    name: str, *, about: Text, examples: Sequence[str], **kwargs: Any
) -> Callable[[Callable[..., int | None]], Command]:
    """Turn a function into a command; what it returns is the exit code, None for 0."""

    def decorate(function: Callable[..., int | None]) -> Command:
        params = list(reversed(function.__dict__.pop("__click_params__", [])))
        return Command(name, about=about, examples=examples, callback=function, params=params, **kwargs)

    return decorate


def option(*names: str, text: Text, **kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, cls=Option, text=text, **kwargs)


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return option("--json", "as_json", is_flag=True, text=words.HELP_JSON)(function)


def dir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return option("--dir", "directory", metavar="DIR", text=words.HELP_DIR)(function)


def choose_language(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Read --lang before anything else, so that `--help --lang zh` and a usage error speak Chinese too."""
    try:
        given, _, _ = command.make_parser(ctx).parse_args(args=list(args))
    except click.UsageError:
        given = {}
    if given.get("lang"):
        i18n.choose(given["lang"])


def show_help(command: Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    for example in command.examples:
        formatter.write(f"  $ {example}\n")
    formatter.write_paragraph()
    formatter.write_text(command.about())
    formatter.write_paragraph()
    pieces = " ".join(command.collect_usage_pieces(ctx))
    formatter.write_usage(ctx.command_path, pieces, prefix=words.USAGE())
    with formatter.section(words.OPTIONS()):
        formatter.write_dl(help_records(command, ctx))


def help_records(command: click.Command, ctx: click.Context) -> list[tuple[str, str]]:
    """(option, what it means) of every option, click's own --help in our words."""
    records = []
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            records.append((record[0], words.HELP_HELP() if param.name == "help" else record[1]))
    return records


def summary(about: Text) -> str:
    """The first sentence of what a command is about."""
    return about().partition("\n")[0]
