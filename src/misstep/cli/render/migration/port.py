"""What became of each ported file, in a terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from misstep.sentences.cli import porting as words
from misstep.sentences.text import said

if TYPE_CHECKING:
    from misstep.migration.port.project import Outcome, Port


def show_port(port: Port, *, spec: str, data: str | None, calls: bool) -> None:
    for one in port.files:
        _show(one, spec=spec, data=data, calls=calls)
    if port.copied:
        click.echo(words.PORT_COPIED(count=len(port.copied)))


def _show(one: Outcome, *, spec: str, data: str | None, calls: bool) -> None:
    ported = one.ported
    click.echo(
        words.PORTED(
            target=str(one.target),
            done=f"{ported.done:.0%}",
            lines=ported.lines,
            left=ported.left_lines,
            proven=f"{ported.proven:.0%}",
            calls=len(ported.calls),
        )
    )
    for call in ported.calls if calls else ():
        text = words.PORT_CALL if call.executed else words.PORT_CONVENTION
        click.echo("  " + text(line=call.line, name=call.name, target=call.target, executed=call.executed))
    for left in ported.left:
        click.echo("  " + words.PORT_LEFT(line=left.line, name=left.name, why=said(left.why)))
    for hazard in ported.hazards:
        click.echo("  " + words.PORT_HAZARD(line=hazard.line, message=said(hazard.message)))
    click.echo("  " + _verdict(one, spec=spec, data=data))


def _verdict(one: Outcome, *, spec: str, data: str | None) -> str:
    from misstep.cli.render.migration.check import STAGES

    if one.importable is None:
        return words.PORT_NOT_TRIED()
    if not one.importable:
        return words.PORT_NOT_IMPORTED(why=said(one.trouble))
    if one.same is None:
        return words.PORT_IMPORTED()
    if one.same:
        return words.PORT_SAME(stages=", ".join(STAGES[stage["name"]]() for stage in one.stages))
    wrong = next(stage["name"] for stage in one.stages if stage["status"] == "failed")
    function = spec.rpartition(":")[2] if ".py:" in spec else "build"
    return words.PORT_DIFFERS(
        stage=STAGES[wrong](), left=f"{one.ported.path}:{function}", right=f"{one.target}:{function}", data=data
    )


def as_json(port: Port) -> dict[str, Any]:
    return {
        "fine": port.fine,
        "files": [
            {
                "source": one.ported.path,
                "target": str(one.target),
                "lines": one.ported.lines,
                "left_lines": one.ported.left_lines,
                "done": one.ported.done,
                "proven": one.ported.proven,
                "calls": [asdict(call) for call in one.ported.calls],
                "left": [asdict(left) for left in one.ported.left],
                "hazards": [asdict(hazard) for hazard in one.ported.hazards],
                "importable": one.importable,
                "trouble": one.trouble,
                "same": one.same,
                "stages": one.stages,
            }
            for one in port.files
        ],
        "copied": [str(path) for path in port.copied],
    }
