"""Findings in SARIF 2.1.0, the format that code hosts and editors show beside the source."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import PurePath

import click

from misstep import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def print_sarif(rules: Iterable[tuple[str, str, str]], results: Iterable[tuple[str, str, str, str, int, int]]) -> None:
    click.echo(sarif(rules, results))


def sarif(rules: Iterable[tuple[str, str, str]], results: Iterable[tuple[str, str, str, str, int, int]]) -> str:
    """Rules are (id, text, severity); results are (rule, severity, text, path, line, column)."""
    driver = {
        "name": "misstep",
        "version": __version__,
        "rules": [
            {
                "id": id,
                "shortDescription": {"text": text},
                "defaultConfiguration": {"level": _LEVELS.get(severity, "note")},
            }
            for id, text, severity in rules
        ],
    }
    found = [
        {
            "ruleId": rule,
            "level": _LEVELS.get(severity, "note"),
            "message": {"text": text},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": PurePath(path).as_posix()},
                        "region": {"startLine": line, "startColumn": column},
                    }
                }
            ],
        }
        for rule, severity, text, path, line, column in results
    ]
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": found}]}
    return json.dumps(log, indent=2, ensure_ascii=False)
