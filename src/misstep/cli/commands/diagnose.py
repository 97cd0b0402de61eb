"""`misstep diagnose RUN`: why it does not learn, as one ranked list."""

from __future__ import annotations

from pathlib import Path

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.diagnosis import diagnosis_facts, tell_diagnosis
from misstep.cli.render.json import print_json
from misstep.diagnosis.diagnose import diagnose
from misstep.diagnosis.rules import RULES
from misstep.errors import RunError
from misstep.sentences.cli import diagnose as words


@define(
    "diagnose",
    about=words.ABOUT_DIAGNOSE,
    examples=("misstep diagnose last", "misstep diagnose missteps/try-7 --html why.html", "misstep diagnose --rules"),
)
@click.argument("run", default="last")
@option("--html", metavar="FILE", text=words.HELP_HTML)
@option("--rules", "list_rules", is_flag=True, text=words.HELP_RULES)
@dir_option
@json_option
def command(run: str, *, html: str | None, list_rules: bool, directory: str | None, as_json: bool) -> int:
    if list_rules:
        return _list_rules(as_json=as_json)
    diagnosis = diagnose(run, directory)
    if html:
        from misstep.cli.render.diagnosis_html import page

        try:
            Path(html).write_text(page(diagnosis), encoding="utf-8")
        except OSError as error:
            raise RunError(words.CANNOT_WRITE.of(path=html, why=error.strerror or str(error))) from None
    if as_json:
        print_json(diagnosis_facts(diagnosis))
    else:
        tell_diagnosis(diagnosis)
        if html:
            click.echo(words.WROTE(path=html))
    return DIFFERS if diagnosis.errors else FINE


def _list_rules(*, as_json: bool) -> int:
    if as_json:
        print_json([{"rule": one.id, "severity": one.severity, "about": one.title.en} for one in RULES.values()])
        return FINE
    for one in RULES.values():
        click.echo(f"{one.id:32} {words.SEVERITIES[one.severity]():12} {(one.check.__doc__ or '').strip()}".rstrip())
    return FINE
