"""`--json`: the facts as they are, every digit; NaN and infinities as the strings "NaN", "Infinity", "-Infinity"."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from misstep.core.address import Address, Pattern
from misstep.store.codec import encode


def print_json(thing: Any) -> None:
    """Print one JSON value; records of the domain become objects with all of their fields."""
    click.echo(json.dumps(plain(thing), indent=2, ensure_ascii=False, allow_nan=False))


def plain(thing: Any) -> Any:
    """What JSON can hold, records inside lists and dictionaries included."""
    if isinstance(thing, dict):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(value) for value in thing]
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type | Address | Pattern):
        return {field.name: plain(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
    return encode(thing)
