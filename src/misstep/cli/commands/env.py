"""`misstep env`: versions, whether each framework works here, and the settings in force."""

from __future__ import annotations

from typing import Any

import click

from misstep.cli.command import command as define
from misstep.cli.command import json_option
from misstep.cli.environment import environment_facts
from misstep.cli.render.json import print_json
from misstep.sentences.cli import general as words
from misstep.settings import BY_NAME


@define("env", about=words.ABOUT_ENV, examples=("misstep env", "misstep env --json"))
@json_option
def command(*, as_json: bool) -> None:
    facts = environment_facts()
    if as_json:
        print_json(facts)
    else:
        _tell(facts)


def _tell(facts: dict[str, Any]) -> None:
    for name in ("misstep", "python", "platform", "numpy"):
        click.echo(f"{name:<10} {facts[name] or words.NOT_INSTALLED()}")
    backend = facts["kernels"]
    click.echo(f"{'kernels':<10} {words.NUMPY_TWIN() if backend == 'numpy' else backend}")
    for name, state in facts["frameworks"].items():
        verdict = words.WORKS() if state.works else words.DOES_NOT_WORK(why=state.problem)
        said = f"{state.version}, {verdict}" if state.version is not None else words.NOT_INSTALLED()
        click.echo(f"{name:<10} {said}")
    changed = facts["changed_settings"]
    click.echo(f"\n{words.SETTINGS_IN_FORCE()}: {'' if changed else words.ALL_DEFAULT()}")
    for name, value in changed.items():
        click.echo(f"  {name} = {value!r}  ({BY_NAME[name].variable})")
