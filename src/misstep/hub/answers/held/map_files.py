"""Map files that links name: a number made from the text, so that the same map has the same link on every hub.

They are kept beside the runs, in `.maps/`, and outlive the hub; where nothing can be written, in memory.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from misstep.compare.mapfile import NameMap, parse_map
from misstep.errors import CompareError
from misstep.store.atomic import write_text

LARGEST = 1 << 20
MOST = 500
_NUMBER = re.compile(r"[0-9a-f]{16}")


class Maps:
    """The maps of one folder of runs."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / ".maps"
        self._here: dict[str, str] = {}

    def keep(self, text: str) -> str:
        """Keep a map that can be read; its number."""
        if len(text) > LARGEST:
            raise CompareError("the map is larger than 1 MiB; patterns and rules make it shorter")
        parse_map(text)
        id = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        self._here[id] = text
        try:
            self._folder.mkdir(exist_ok=True)
            if len(os.listdir(self._folder)) < MOST:
                write_text(self._folder / f"{id}.toml", text)
        except OSError:
            pass  # a folder we may only read: the link then lives as long as this hub
        return id

    def text(self, id: str) -> str:
        if not _NUMBER.fullmatch(id):
            raise CompareError(f"{id[:40]!r} is no number of a map")
        if id not in self._here:
            try:
                self._here[id] = (self._folder / f"{id}.toml").read_text(encoding="utf-8")
            except OSError:
                raise CompareError(f"the map {id} is not kept here; upload the file again") from None
        return self._here[id]

    def names(self, id: str) -> NameMap | None:
        return parse_map(self.text(id)) if id else None
