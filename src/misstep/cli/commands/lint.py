"""`misstep lint PATHS`: mistakes a training script shows without running."""

from __future__ import annotations

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.diagnosis.lint import RULES, Report, lint_paths
from misstep.errors import LintError
from misstep.sentences.cli import lint as words
from misstep.sentences.text import said


@define(
    "lint",
    about=words.ABOUT_LINT,
    examples=("misstep lint train.py", "misstep lint src --format sarif > lint.sarif", "misstep lint --rules"),
)
@click.argument("paths", nargs=-1)
@option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text", text=words.HELP_FORMAT)
@option("--only", multiple=True, metavar="RULE", text=words.HELP_ONLY)
@option("--without", multiple=True, metavar="RULE", text=words.HELP_WITHOUT)
@option("--rules", "list_rules", is_flag=True, text=words.HELP_RULES)
@json_option
def command(
    paths: tuple[str, ...],
    *,
    style: str,
    only: tuple[str, ...],
    without: tuple[str, ...],
    list_rules: bool,
    as_json: bool,
) -> int:
    style = "json" if as_json else style
    if list_rules:
        return _list_rules(as_json=style == "json")
    report = lint_paths(paths or (".",), only=only, without=without)
    if not report.files and not report.unread:
        raise LintError(words.NO_FILES.of(paths=list(paths or (".",))))
    for problem in report.unread:
        click.echo(f"misstep: {said(problem)}", err=True)
    if style == "json":
        print_json({"files": report.files, "findings": report.remarks, "unread": report.unread})
    elif style == "sarif":
        from misstep.cli.render.sarif import print_sarif

        print_sarif(
            [(one.id, one.message.en, one.severity) for one in RULES.values()],
            [
                (one.rule, one.severity, f"{one.message}; {one.advice}", one.path, one.line, one.column)
                for one in report.remarks
            ],
        )
    else:
        _print_text(report)
    return DIFFERS if report.wrong else FINE


def _print_text(report: Report) -> None:
    for one in report.remarks:
        severity = words.SEVERITIES[one.severity]()
        click.echo(f"{one.path}:{one.line}:{one.column}: {severity}: {said(one.message)} [{one.rule}]")
        click.echo(f"    {one.code}\n    → {said(one.advice)}")
    if report.remarks:
        click.echo(words.FOUND(count=len(report.remarks), files=report.files))
    else:
        click.echo(words.CLEAN(files=report.files, rules=len(RULES)))


def _list_rules(*, as_json: bool) -> int:
    if as_json:
        print_json([{"rule": one.id, "severity": one.severity, "about": one.message.en} for one in RULES.values()])
        return FINE
    for one in RULES.values():
        click.echo(f"{one.id:28} {words.SEVERITIES[one.severity]():8} {(one.check.__doc__ or '').strip()}".rstrip())
    return FINE
