"""What people say of a run: tags, a note, a pin. Kept beside the record, in labels.json, and never read by training.

    missteps/2026-11-15T18-04-05-fox/labels.json    {"tags": ["baseline"], "note": "warm-up too short", "pinned": true}

A file of its own: the record stays as it was written, and a run that is copied takes its labels along.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from misstep.store.codec import from_json, to_json

LABELS_FILE = "labels.json"
MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4000


@dataclass(frozen=True, slots=True)
class Labels:
    """Tags in the order in which they were given."""

    tags: tuple[str, ...] = ()
    note: str = ""
    pinned: bool = False

    def edited(
        self,
        *,
        add: Iterable[str] = (),
        remove: Iterable[str] = (),
        note: str | None = None,
        pinned: bool | None = None,
    ) -> Labels:
        """These, with what was said about them; None leaves a thing as it is."""
        gone = {tidy_tag(tag) for tag in remove}
        tags = dict.fromkeys(tag for tag in (*self.tags, *map(tidy_tag, add)) if tag and tag not in gone)
        changed = replace(self, tags=tuple(tags)[:MOST_TAGS])
        if note is not None:
            changed = replace(changed, note=note.strip()[:LONGEST_NOTE])
        return changed if pinned is None else replace(changed, pinned=pinned)


def tidy_tag(text: str) -> str:
    """A tag as it is kept: one line without commas, which separate tags where they are typed."""
    return re.sub(r"[\s,]+", " ", text).strip()[:LONGEST_TAG]


def read_labels(run: Path | str) -> Labels:
    """What was said of this run; nothing when there is no such file, or somebody's editor broke it."""
    try:
        with open(os.path.join(run, LABELS_FILE), "rb") as file:
            plain = from_json(file.read(LONGEST_NOTE * 8))
        tags = [tidy_tag(str(tag)) for tag in plain.get("tags", ())]
        return Labels(
            tuple(tag for tag in tags if tag)[:MOST_TAGS], str(plain.get("note", "")), plain.get("pinned") is True
        )
    except (OSError, ValueError, TypeError, AttributeError):
        return Labels()


def write_labels(run: Path, labels: Labels) -> None:
    """Replaces what was said before; it appears whole or not at all."""
    target = run / LABELS_FILE
    if labels == Labels():
        target.unlink(missing_ok=True)
        return
    draft = run / f".{LABELS_FILE}.{os.getpid()}"
    try:
        plain = {"tags": list(labels.tags), "note": labels.note, "pinned": labels.pinned}
        draft.write_bytes(to_json(plain) + b"\n")
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
