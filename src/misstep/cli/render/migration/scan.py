"""A scan in a terminal, as CSV, and as one HTML page."""

from __future__ import annotations

import csv
import html
import io
from typing import TYPE_CHECKING

from misstep.sentences.cli import porting as words
from misstep.sentences.text import said

if TYPE_CHECKING:
    from misstep.migration.scan.report import Row, Scan

SEVERITY = {"equivalent": "info", "differs": "info", "none": "error", "uncertain": "warning"}
_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .6rem;vertical-align:top;"
    "border-bottom:1px solid #8884}code{font:12px/1.4 ui-monospace,monospace}.none{color:#c62828}"
    ".uncertain{color:#b26a00}.differs{color:#1565c0}.equivalent{color:#2e7d32}"
)


def as_text(scan: Scan, *, every: bool) -> str:
    lines = []
    for row in scan.rows:
        if every or row.verdict != "equivalent":
            verdict = words.VERDICTS[row.verdict]()
            lines.append(f"{row.path}:{row.line}:{row.column}: {verdict}: {row.name}{_because(row)}")
            if row.becomes:
                lines.append("    → " + " ".join(row.becomes.split()))
    for path, line, code in scan.unresolved:
        lines.append(words.SCAN_UNRESOLVED(path=path, line=line, code=" ".join(code.split())))
    return "\n".join([*lines, totals(scan)])


def totals(scan: Scan) -> str:
    return words.SCAN_TOTALS(
        files=scan.files,
        calls=scan.calls,
        resolved=f"{scan.resolved:.1%}",
        rows=len(scan.rows),
        framework="PyTorch" if scan.to == "mindspore" else "MindSpore",
        **scan.totals,
    )


def as_csv(scan: Scan) -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["path", "line", "column", "call", "verdict", "becomes", "executed", "why"])
    for row in scan.rows:
        table.writerow(
            [row.path, row.line, row.column, row.name, row.verdict, row.becomes, row.executed, said(row.why)]
        )
    return out.getvalue().rstrip("\n")


def as_html(scan: Scan) -> str:
    """One page that needs nothing else."""
    head = "".join(f"<th>{html.escape(text())}" for text in (words.COLUMN_CALL, words.COLUMN_BECOMES, words.COLUMN_WHY))
    body = "".join(_row_html(row) for row in scan.rows)
    return (
        f"<!doctype html><meta charset=utf-8><title>misstep scan</title><style>{_STYLE}</style>"
        f"<h1>misstep scan --to {scan.to}</h1><p>{html.escape(totals(scan))}"
        f"<table><tr><th><th><th>{head}{body}</table>"
    )


def _row_html(row: Row) -> str:
    place = html.escape(f"{row.path}:{row.line}")
    becomes = f"<code>{html.escape(row.becomes)}</code>" if row.becomes else ""
    return (
        f"<tr><td>{place}<td class={row.verdict}>{html.escape(words.VERDICTS[row.verdict]())}"
        f"<td><code>{html.escape(row.name)}</code><td>{becomes}<td>{html.escape(said(row.why))}"
    )


def _because(row: Row) -> str:
    return f" ({said(row.why)})" if row.why else ""
