"""`misstep lint`: what the source of a training script shows without running it.

    from misstep.diagnosis.lint import lint_paths
    for remark in lint_paths(["train.py"]).remarks: ...

Rules read one file at a time, through imports into other files of the project; each is silent on what it cannot
resolve. `# misstep: ignore[rule]` on its line switches a rule off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from misstep.diagnosis.lint import rules  # noqa: F401  (registers them)
from misstep.diagnosis.lint.rule import RULES, Remark, Rule, remarks_of
from misstep.diagnosis.lint.source import Source, parse_source, python_files, read_source
from misstep.errors import LintError, nearest
from misstep.sentences.advice import lint as sentences

__all__ = ["RULES", "LintError", "Remark", "Report", "Rule", "lint_paths", "lint_text"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in how many files, and which files could not be read."""

    remarks: tuple[Remark, ...]
    files: int
    unread: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        """True when something was found that is more than a hint."""
        return any(one.severity in ("error", "warning") for one in self.remarks)


def lint_paths(paths: Iterable[str | Path], *, only: Sequence[str] = (), without: Sequence[str] = ()) -> Report:
    """Look at files, and at every .py file below folders. A file that is named must be readable; others are listed."""
    chosen = choose(only, without)
    remarks: list[Remark] = []
    unread: list[str] = []
    others: dict[str, Source | None] = {}
    files = 0
    for path, named in python_files(paths):
        try:
            source = read_source(path, others)
        except LintError as error:
            if named:
                raise
            unread.append(str(error))
            continue
        files += 1
        remarks += lint_source(source, chosen)
    return Report(tuple(remarks), files, tuple(unread))


def lint_text(text: str, path: str = "<text>", *, only: Sequence[str] = ()) -> list[Remark]:
    """Look at a piece of source."""
    return lint_source(parse_source(text, path), choose(only, ()))


def lint_source(source: Source, chosen: Sequence[Rule]) -> list[Remark]:
    found = [remark for one in chosen for remark in remarks_of(one, source)]
    kept = {(one.rule, one.line, one.column): one for one in found if not _ignored(source, one)}
    return sorted(kept.values(), key=lambda one: (one.line, one.column, one.rule))


def choose(only: Sequence[str], without: Sequence[str]) -> list[Rule]:
    for name in (*only, *without):
        if name not in RULES:
            raise LintError(sentences.NO_RULE.of(name=name, nearest=nearest(name, RULES)))
    return [one for id, one in RULES.items() if (not only or id in only) and id not in without]


def _ignored(source: Source, remark: Remark) -> bool:
    off = source.ignored.get(remark.line)
    return off is not None and (not off or remark.rule in off)
