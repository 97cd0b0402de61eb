"""`misstep scan PATHS --to mindspore`: what every call of a source is in the other framework."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.sentences.cli import porting as words
from misstep.sentences.text import said

if TYPE_CHECKING:
    from misstep.migration.scan.report import Scan


@define(
    "scan",
    about=words.ABOUT_SCAN,
    examples=(
        "misstep scan model.py --to mindspore",
        "misstep scan src --to mindspore --format html --out scan.html",
        "misstep scan net.py --to torch --all",
    ),
)
@click.argument("paths", nargs=-1, required=True)
@option("--to", type=click.Choice(["mindspore", "torch"]), default="mindspore", text=words.HELP_TO)
@option(
    "--format", "style", type=click.Choice(["text", "json", "csv", "sarif", "html"]), default="text",
    text=words.HELP_FORMAT,
)  # fmt: skip
@option("--out", metavar="FILE", text=words.HELP_OUT_FILE)
@option("--all", "every", is_flag=True, text=words.HELP_ALL)
@json_option
def command(paths: tuple[str, ...], *, to: str, style: str, out: str | None, every: bool, as_json: bool) -> int:
    from misstep.migration.scan.report import scan_paths

    scan = scan_paths(paths, to="torch" if to == "torch" else "mindspore")
    for problem in scan.unread:
        click.echo(f"misstep: {said(problem)}", err=True)
    text = _written(scan, "json" if as_json else style, every=every)
    if out is not None:
        _write(Path(out), text)
        from misstep.cli.render.migration.scan import totals

        click.echo(totals(scan))
    else:
        click.echo(text)
    return DIFFERS if scan.totals["none"] or scan.totals["uncertain"] or scan.unresolved else FINE


def _written(scan: Scan, style: str, *, every: bool) -> str:
    from misstep.cli.render.migration import scan as render

    if style == "json":
        import json

        facts = {
            "to": scan.to,
            "files": scan.files,
            "lines": scan.lines,
            "calls": scan.calls,
            "resolved": scan.resolved,
            "totals": scan.totals,
            "rows": [asdict(row) for row in scan.rows],
            "unresolved": [{"path": path, "line": line, "code": code} for path, line, code in scan.unresolved],
            "unread": scan.unread,
        }
        return json.dumps(facts, ensure_ascii=False, indent=2)
    if style == "csv":
        return render.as_csv(scan)
    if style == "html":
        return render.as_html(scan)
    if style == "sarif":
        from misstep.cli.render.sarif import sarif

        rules = [(f"scan-{key}", text.en, render.SEVERITY[key]) for key, text in words.VERDICTS.items()]
        results = [
            (f"scan-{row.verdict}", render.SEVERITY[row.verdict], _message(row.name, row.becomes, row.why),
             row.path, row.line, row.column)
            for row in scan.rows
        ]  # fmt: skip
        return sarif(rules, results)
    return render.as_text(scan, every=every)


def _message(name: str, becomes: str, why: str) -> str:
    return "; ".join(part for part in (f"{name} → {becomes}" if becomes else name, why) if part)


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)
