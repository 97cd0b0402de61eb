"""`facts.jsonl`: how a program trains, as sealed lines; each is one record of core/facts.py with its kind."""

from __future__ import annotations

from pathlib import Path

from misstep.core.facts import RECORDS, Record
from misstep.store.codec import decode, encode
from misstep.store.journal import LineReader, seal

_KINDS = {record: kind for kind, record in RECORDS.items()}


def fact_line(record: Record) -> bytes:
    """The record as it stands in the file."""
    return seal({"kind": _KINDS[type(record)], **encode(record)})


def read_facts(path: Path) -> list[Record]:
    """The records there are; a damaged line, or one of a newer kind, is left out."""
    found: list[Record] = []
    for plain in LineReader(path).new_lines():
        kind = RECORDS.get(str(plain.pop("kind", "")))
        if kind is None:
            continue
        try:
            found.append(decode(kind, plain))
        except ValueError:
            continue
    return found
