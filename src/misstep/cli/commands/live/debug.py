"""`misstep debug [RUN]`: the debugger at a prompt."""

from __future__ import annotations

import sys

import click

from misstep.cli.command import command as define
from misstep.cli.command import dir_option, option
from misstep.cli.prompt import Prompt, where
from misstep.cli.remote import debugger_for
from misstep.sentences.cli import live as words


@define(
    "debug",
    about=words.ABOUT_DEBUG,
    examples=("misstep debug last", "misstep debug last -c pause -c 'p encoder.0.weight:param[0,:5]' -c c"),
)
@click.argument("run", default="last")
@option("-c", "commands", multiple=True, metavar="COMMAND", text=words.HELP_COMMANDS)
@dir_option
def command(run: str, *, commands: tuple[str, ...], directory: str | None) -> int:
    with debugger_for(run, directory) as debugger:
        prompt = Prompt(debugger, click.echo)
        if commands:
            return 0 if all(prompt.do(line) for line in commands) else 1
        click.echo(f"{debugger.run}: {where(debugger.state)}")
        _converse(prompt)
        if debugger.state.phase == "paused":
            click.echo(words.GOODBYE())
    return 0


def _converse(prompt: Prompt) -> None:
    """Read lines until the user leaves; Ctrl-C pauses a run that is under way, as in any debugger."""
    _with_completion(prompt)
    while not prompt.left:
        try:
            line = input(f"({prompt.debugger.state.phase} {prompt.debugger.state.step}) ")
            prompt.do(line)
        except KeyboardInterrupt:
            click.echo()
            if prompt.debugger.state.phase in ("running", "stepping"):
                prompt.do("pause")
        except EOFError:
            break


def _with_completion(prompt: Prompt) -> None:
    if not sys.stdin.isatty():
        return
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, state: int) -> str | None:
        found = prompt.complete(text, readline.get_line_buffer())
        return found[state] if state < len(found) else None

    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
