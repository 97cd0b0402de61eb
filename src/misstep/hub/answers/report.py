"""A run on one page to be mailed or printed: verdict, findings, loss, what was run. One HTML file without scripts.

Everything in it was written by somebody else (a command line, a source line, an exception): all of it is escaped.
"""

from __future__ import annotations

import html
import math
import time
from collections.abc import Iterable, Mapping

from misstep import __version__
from misstep.hub.answers.curves import scalars
from misstep.hub.answers.verdict import run_verdict
from misstep.hub.listing.parameters import parameters_of
from misstep.protocol.story import FindingView, RunStory, VerdictView
from misstep.protocol.views import as_float
from misstep.sentences import report as texts
from misstep.sentences.language import Language
from misstep.sentences.text import Text
from misstep.store.labels import read_labels
from misstep.store.reading.reader import Run

POINTS = 600
_WIDE, _HIGH = 860, 180
_STYLE = """
body{font:14px/1.5 system-ui,"Noto Sans CJK SC",sans-serif;color:#1f2328;max-width:900px;margin:32px auto}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}code,pre{font:13px/1.5 ui-monospace,monospace}
.answer{border-left:6px solid #a21caf;background:#faf0fb;padding:14px 18px;margin:16px 0;border-radius:0 8px 8px 0}
.answer.none{border-color:#8c959f;background:#f6f8fa}.answer h2{margin:0 0 6px}.dim{color:#59636e}
pre{background:#f6f8fa;border:1px solid #d0d7de;border-radius:6px;padding:8px 12px;white-space:pre-wrap}
table{border-collapse:collapse;width:100%}td{border-bottom:1px solid #e4e8ec;padding:4px 10px 4px 0;vertical-align:top}
td:first-child{color:#59636e;width:150px}.finding{border-top:1px solid #d0d7de;padding:10px 0}.finding b{display:block}
svg{width:100%;height:auto;border:1px solid #d0d7de;border-radius:6px}@media print{body{margin:0}}
"""


def report(run: Run, story: RunStory, lang: Language) -> str:
    """The whole page, in this language."""
    words = _Words(lang)
    title = words.say(texts.TITLE, run=run.name)
    parts = [
        f"<h1>{title}</h1>",
        _answer(run_verdict(run, lang), story, words),
        *([f"<h2>{words.say(texts.FOUND)}</h2>"] if story.findings else []),
        *(_finding(one) for one in story.findings),
        _loss(run, words),
        _facts(run, words),
    ]
    if story.notes:
        parts.append(f"<h2>{words.say(texts.NOTES)}</h2>")
        parts += [f"<p>{html.escape(note)}</p>" for note in story.notes]
    parts.append(f'<p class="dim">{words.say(texts.MADE, version=__version__)}</p>')
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="{lang}"><head>{head}</head><body>{"".join(parts)}</body></html>'


class _Words:
    """Sentences in one language, ready to stand in HTML."""

    def __init__(self, lang: Language) -> None:
        self._lang = lang

    def say(self, text: Text, **values: object) -> str:
        return html.escape(text.say(self._lang, values))


def _answer(verdict: VerdictView | None, story: RunStory, words: _Words) -> str:
    if verdict is None:
        told = words.say(texts.CLEAN if story.clean else texts.NOTHING)
        return f'<div class="answer none">{told}</div>'
    kind = "NaN" if verdict.kind == "nan" else "Inf"
    title = html.escape(verdict.title)
    if verdict.kind != "exception":
        title = words.say(texts.BORN, kind=kind, node=verdict.node, step=verdict.step, phase=verdict.phase)
    lines = [f"<h2>{title}</h2>", *(f"<p>{html.escape(one)}</p>" for one in verdict.evidence)]
    if verdict.source is not None:
        place = f"{verdict.source.file}:{verdict.source.line}"
        lines.append(f"<pre>{html.escape(place)}   {html.escape(verdict.source.code.strip())}</pre>")
    if verdict.samples:
        lines.append(f"<p>{words.say(texts.SAMPLES, samples=', '.join(map(str, verdict.samples)))}</p>")
    if verdict.command:
        lines.append(f"<pre>$ {html.escape(verdict.command)}</pre>")
    return f'<div class="answer">{"".join(lines)}</div>'


def _finding(finding: FindingView) -> str:
    told = "".join(f"<p>{html.escape(one)}</p>" for one in (*finding.evidence, finding.advice) if one)
    command = f"<pre>$ {html.escape(finding.command)}</pre>" if finding.command else ""
    return f'<div class="finding"><b>{html.escape(finding.title)}</b>{told}{command}</div>'


def _loss(run: Run, words: _Words) -> str:
    curve = scalars(run, "loss", min(run.ranks, default=0), points=POINTS)
    points = [(x, value) for x, y in zip(curve.x, curve.y, strict=True) if (value := as_float(y)) is not None]
    finite = [(x, y) for x, y in points if math.isfinite(y)]
    if len(finite) < 2:
        return ""
    low, high = min(y for _, y in finite), max(y for _, y in finite)
    told = [words.say(texts.LOSS_RANGE, steps=curve.total, low=low, high=high)]
    if len(points) > len(finite):
        told.append(words.say(texts.LOSS_BAD, n=len(points) - len(finite)))
    return f'<h2>{words.say(texts.LOSS)}</h2>{_drawing(points, low, high)}<p class="dim">{" · ".join(told)}</p>'


def _drawing(points: list[tuple[int, float]], low: float, high: float) -> str:
    """The curve with gaps where it is not finite, and a magenta line there."""
    first, last = points[0][0], points[-1][0]
    path, marks, pen = [], [], "M"
    for step, loss in points:
        x = 8 + (_WIDE - 16) * (step - first) / max(1, last - first)
        if not math.isfinite(loss):
            marks.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{_HIGH - 8}" stroke="#d946ef"/>')
            pen = "M"
            continue
        y = _HIGH - 8 - (_HIGH - 16) * (loss - low) / ((high - low) or 1.0)
        path.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    line = f'<path d="{"".join(path)}" fill="none" stroke="#0072b2" stroke-width="1.6"/>'
    return f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img">{"".join(marks)}{line}</svg>'


def _facts(run: Run, words: _Words) -> str:
    info, labels = run.info, read_labels(run.path)
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.started))
    facts: Mapping[Text, str] = {
        texts.COMMAND: " ".join(info.command),
        texts.STATE: run.state,
        texts.STARTED: started,
        texts.HOST: info.host,
        texts.VERSIONS: ", ".join(f"{name} {version}" for name, version in info.versions.items()),
        texts.TAGS: ", ".join(labels.tags),
        texts.NOTE: labels.note,
    }
    rows = [(words.say(name), html.escape(value)) for name, value in facts.items() if value]
    given = parameters_of(info.command, directory=info.directory, started=info.started, host=info.host)
    table = f"<h2>{words.say(texts.FACTS)}</h2>{_table(rows)}"
    if given:
        typed = [(html.escape(name), html.escape(str(value))) for name, value in given.items()]
        table += f"<h2>{words.say(texts.PARAMETERS)}</h2>{_table(typed)}"
    return table


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{name}</td><td><code>{value}</code></td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"
