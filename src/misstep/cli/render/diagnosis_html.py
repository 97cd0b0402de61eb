"""A diagnosis as one HTML file to send to a colleague: no script, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from misstep.core.finding import Finding
from misstep.diagnosis.diagnose import Diagnosis
from misstep.diagnosis.pictures import pictures_of
from misstep.diagnosis.rules import RULES
from misstep.sentences.cli import diagnose as words
from misstep.sentences.diagnosis.unchecked import FAMILIES
from misstep.sentences.language import language
from misstep.sentences.text import said

_STYLE = """
:root{color-scheme:light dark;--line:#d0d7de;--red:#cf222e;--amber:#9a6700;--green:#1a7f37;--blue:#0969da}
@media (prefers-color-scheme:dark){:root{--line:#30363d;--red:#ff7b72;--amber:#d29922;--green:#3fb950;--blue:#58a6ff}}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
section{border:1px solid var(--line);border-radius:10px;padding:1rem 1.2rem;margin:1rem 0}
section.error{border-left:5px solid var(--red)}section.warning{border-left:5px solid var(--amber)}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin:.2rem 0}code,pre{font-family:ui-monospace,monospace;font-size:.9em}
.rule{opacity:.65;font-size:.85em}.fine{color:var(--green)}ul{margin:.4rem 0}svg{width:100%;height:6rem}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(16rem,1fr));gap:1rem}figcaption{opacity:.7}
"""


def page(diagnosis: Diagnosis) -> str:
    """The whole file, in the reader's language."""
    parts = [f"<h1>misstep diagnose · {escape(diagnosis.run)}</h1>"]
    if not diagnosis.looks:
        parts.append(f"<p>{escape(words.NOT_KNOWN())}</p>")
    elif not diagnosis.causes:
        fine = words.HEALTHY(rules=len(RULES), steps=diagnosis.steps, looks=diagnosis.looks)
        parts.append(f'<p class="fine">{escape(fine)}</p>')
    parts += [_cause(place, one) for place, one in enumerate(diagnosis.causes, 1)]
    below = [one for one in diagnosis.findings if one.cause and one.severity != "info"]
    if below:
        numbers = {one.rule: place for place, one in enumerate(diagnosis.causes, 1)}
        lines = [words.EXPLAINED(title=one.title, number=numbers.get(one.cause, one.cause)) for one in below]
        parts.append(_list(words.CONSEQUENCES(), lines))
    parts.append(_pictures(diagnosis))
    if diagnosis.unchecked:
        lines = [words.OF_FAMILY(family=FAMILIES[one], missing=missing) for one, missing in diagnosis.unchecked.items()]
        parts.append(_list(words.NOT_CHECKED(), lines))
    title = escape(f"misstep diagnose · {diagnosis.run}")
    return (
        f'<!doctype html><html lang="{language()}"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
        f"<style>{_STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )


def _cause(place: int, one: Finding) -> str:
    sure = words.CAUSE(severity=words.SEVERITIES[one.severity](), confidence=one.confidence or 1.0)
    source = f"<pre>{escape(one.source)}</pre>" if one.source else ""
    evidence = "".join(f"<li>{escape(said(line))}</li>" for line in one.evidence if line)
    return (
        f'<section class="{one.severity}"><h2>{place}. {escape(said(one.title))}</h2>'
        f'<div class="rule">{escape(one.rule)} · {escape(sure)}</div>{source}<ul>{evidence}</ul>'
        f"<p><b>{escape(words.FIX(advice=one.advice))}</b></p></section>"
    )


def _list(title: str, lines: Sequence[str]) -> str:
    return (
        f"<section><h2>{escape(title)}</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul></section>"
    )


def _pictures(diagnosis: Diagnosis) -> str:
    if not diagnosis.facts:
        return ""
    drawn = pictures_of(diagnosis.facts[0])
    figures = []
    if len(drawn.losses) > 1:
        figures.append(_figure(_line(drawn.losses), words.PICTURE_LOSS()))
    if len(drawn.layers) > 1:
        figures.append(_figure(_line([_log(one) for one in drawn.gradients]), words.PICTURE_GRADIENTS(step=drawn.step)))
    if drawn.layers:
        figures.append(_figure(_bars(drawn.updates), words.PICTURE_UPDATES(step=drawn.step)))
    return f'<section class="pictures">{"".join(figures)}</section>' if figures else ""


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _log(value: float | None) -> float | None:
    return math.log10(value) if value is not None and value > 0 else None


def _line(values: Sequence[float | None]) -> str:
    known = [one for one in values if one is not None]
    if not known:
        return _SVG.format(inside="")
    low, high = min(known), max(known)
    points = [
        f"{300 * place / max(1, len(values) - 1):.1f},{92 - 84 * (one - low) / ((high - low) or 1):.1f}"
        for place, one in enumerate(values)
        if one is not None
    ]
    line = f'<polyline points="{" ".join(points)}" fill="none" stroke="var(--blue)" stroke-width="2"/>'
    return _SVG.format(inside=line)


def _bars(values: Sequence[float | None]) -> str:
    """On a logarithmic scale from 1e-6; red where nothing moves."""
    width = 300 / max(1, len(values))
    bars = []
    for place, one in enumerate(values):
        tall = 0.0 if not one else max(2.0, 90 * min(1.0, (6 + math.log10(one)) / 6)) if one > 1e-6 else 2.0
        colour = "var(--blue)" if tall else "var(--red)"
        tall = tall or 2.0
        bars.append(
            f'<rect x="{place * width + 1:.1f}" y="{96 - tall:.1f}" width="{max(1.0, width - 2):.1f}"'
            f' height="{tall:.1f}" fill="{colour}"/>'
        )
    return _SVG.format(inside="".join(bars))


_SVG = '<svg viewBox="0 0 300 100" preserveAspectRatio="none" role="img">{inside}</svg>'
