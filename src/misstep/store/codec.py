"""Records to JSON and back, for every dataclass of the domain.

JSON knows no NaN: a float that is not finite is written as "NaN", "Infinity" or "-Infinity", and comes back as a
float wherever the record's field may be a float. An Address and a Pattern are written as the text a user would type.
Fields at their default are left out of journal records; unknown fields are ignored, so that an older reader copes
with a newer writer of the same format. A sentence is written as its English, and once more under `said`, as its id and
arguments, so that it can be read in another language.

    encode(Step(number=7, loss=nan))   →  {"number": 7, "loss": "NaN"}
    decode(Step, {"number": 7, "loss": "NaN"})
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from misstep.core.address import Address, Pattern
from misstep.errors import AddressError
from misstep.sentences.text import Sentence, revived

Record = TypeVar("Record")
Plain = Any
"""What JSON can hold: None, bool, int, float, str, list, dict."""

SAID = "said"
"""Beside the English of a record: id and arguments of each of its fields that is a sentence."""
NOT_FINITE: dict[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode(thing: Any, *, defaults: bool = False) -> Plain:
    """The record as plain JSON data; with `defaults`, fields at their default too."""
    writer = _ENCODERS.get(type(thing))
    if writer is not None:
        return writer(thing)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return _record(thing, defaults)
    return _other(thing)


def decode(kind: type[Record], plain: Plain) -> Record:
    """The record of that type; raises ValueError when the data does not fit."""
    reader: Any = _decoder
    try:
        result: Record = reader(kind)(plain)
    except (AddressError, AttributeError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return result


def decode_all(kind: type[Record], plains: list[Plain]) -> list[Record]:
    """Many records of one simple type at once; raises ValueError when one does not fit exactly, whichever it is."""
    try:
        return msgspec.convert(plains, list[kind])  # type: ignore[valid-type]
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def to_json(plain: Plain) -> bytes:
    """UTF-8 without line breaks; what cannot be written in UTF-8 (half of a surrogate pair) becomes '?'."""
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:
        return msgspec.json.encode(_printable(plain))


def from_json(data: bytes) -> Plain:
    """Raises ValueError for anything but one JSON value, and for one that is nested without end."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise ValueError("JSON that is nested too deep") from None


def number(plain: Plain) -> float:
    """A float as the journal holds it: a number, or the name of one that is not finite."""
    if isinstance(plain, str):
        if plain not in NOT_FINITE:
            raise ValueError(f"{plain!r} is no number")
        return NOT_FINITE[plain]
    return float(plain)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _float(value: float) -> Plain:
    if value - value == 0.0:  # finite; half the time of math.isfinite's call
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _dict(thing: dict[Any, Any]) -> Plain:
    return {key if type(key) is str else str(key): encode(value) for key, value in thing.items()}


def _list(thing: Any) -> Plain:
    return [encode(value) for value in thing]


_ODD_ADDRESS = re.compile(r"[:@#~*?\[]|^\s|\s$|^$")


def _address(address: Address) -> Plain:
    # A node named by somebody's program may hold the marks of the address itself; then the parts are written apart.
    if _ODD_ADDRESS.search(address.node):
        return {field.name: getattr(address, field.name) for field in dataclasses.fields(address)}
    return str(address)


def _pattern(pattern: Pattern) -> Plain:
    text = str(pattern)
    try:
        if Pattern.parse(text) == pattern:
            return text
    except AddressError:
        pass
    return {field.name: getattr(pattern, field.name) for field in dataclasses.fields(pattern)}


def _same(value: Any) -> Any:
    return value


_ENCODERS: dict[type, Callable[[Any], Plain]] = {
    type(None): _same,
    bool: _same,
    int: _same,
    str: _same,
    Sentence: lambda sentence: sentence.english,
    float: _float,
    dict: _dict,
    list: _list,
    tuple: _list,
    set: _list,
    frozenset: _list,
    Address: _address,
    Pattern: _pattern,
}

_MISSING = object()


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names of the fields and their defaults."""
    pairs = []
    for field in dataclasses.fields(kind):
        default = field.default if field.default is not dataclasses.MISSING else _MISSING
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        pairs.append((field.name, default))
    return tuple(pairs)


def _record(thing: Any, defaults: bool) -> Plain:
    plain: dict[str, Plain] = {}
    sentences: dict[str, Plain] = {}
    kind: Any = type(thing)
    for name, default in _fields(kind):
        value = getattr(thing, name)
        if defaults or (value is not default and (type(value) is not type(default) or value != default)):
            plain[name] = encode(value, defaults=defaults)
            if type(value) is Sentence or type(value) is tuple:
                _note_sentence(sentences, name, value)
    if sentences:
        plain[SAID] = sentences
    return plain


def encode_facts(facts: dict[str, Any]) -> dict[str, Plain]:
    """The facts of an event; sentences among them as in a record."""
    plain = {name: encode(fact) for name, fact in facts.items()}
    sentences: dict[str, Plain] = {}
    for name, fact in facts.items():
        _note_sentence(sentences, name, fact)
    return {**plain, SAID: sentences} if sentences else plain


def _note_sentence(sentences: dict[str, Plain], name: str, value: Any) -> None:
    if isinstance(value, Sentence):
        sentences[name] = encode(value.plain())
    elif isinstance(value, list | tuple) and any(isinstance(one, Sentence) for one in value):
        sentences[name] = [encode(one.plain()) if isinstance(one, Sentence) else None for one in value]


def decode_facts(plain: dict[str, Plain]) -> dict[str, Plain]:
    """The facts of an event as read, sentences made whole again."""
    sentences = plain.pop(SAID, None)
    if isinstance(sentences, dict):
        for name, kept in sentences.items():
            if name in plain:
                plain[name] = _whole(plain[name], kept)
    return plain


def _whole(english: Plain, kept: Plain) -> Plain:
    if isinstance(english, str):
        return revived(kept, english)
    if isinstance(english, list | tuple) and isinstance(kept, list) and len(kept) == len(english):
        return type(english)(_whole(one, each) for one, each in zip(english, kept))
    return english


def _other(thing: Any) -> Plain:
    if isinstance(thing, np.ndarray):
        return _list(thing.tolist()) if thing.ndim else encode(thing.item())
    if isinstance(thing, np.generic):
        return encode(thing.item())
    kinds: tuple[Any, ...] = (bool, int, float, str, dict, list, tuple)
    for kind in kinds:
        if isinstance(thing, kind):  # a subclass: an enum of str, a named tuple, torch.Size
            return _ENCODERS[kind](kind(thing))
    return str(thing)


def _printable(plain: Plain) -> Plain:
    if isinstance(plain, str):
        return plain.encode("utf-8", "replace").decode("utf-8")
    if isinstance(plain, dict):
        return {_printable(key): _printable(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_printable(value) for value in plain]
    return plain


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=512)
def _decoder(kind: Any) -> Callable[[Plain], Any]:
    if kind in (Any, object):
        return _same
    if kind is float:
        return number
    if kind in (int, str, bool):
        return _exactly(kind)
    if kind is Address:
        return lambda plain: Address.parse(plain) if isinstance(plain, str) else Address(**plain)
    if kind is Pattern:
        return lambda plain: Pattern.parse(plain) if isinstance(plain, str) else Pattern(**plain)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record_decoder(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _same  # a word from a later misstep is shown as it is
    if origin in (Union, types.UnionType):
        return _union_decoder(inner)
    if kind in (tuple, list, dict):
        return lambda plain: kind(plain)
    if origin is tuple:
        each = _decoder(inner[0])
        return lambda plain: tuple([each(value) for value in plain])
    if origin is list:
        each = _decoder(inner[0])
        return lambda plain: [each(value) for value in plain]
    if origin is dict:
        each = _decoder(inner[1])
        return lambda plain: {key: each(value) for key, value in plain.items()}
    raise TypeError(f"no way to read a {kind} from JSON")


def _exactly(kind: type) -> Callable[[Plain], Any]:
    def read(plain: Plain) -> Any:
        if type(plain) is not kind:
            raise TypeError(f"{plain!r} is no {kind.__name__}")
        return plain

    return read


def _union_decoder(members: tuple[Any, ...]) -> Callable[[Plain], Any]:
    structured = [_decoder(member) for member in members if member not in (type(None), float, int, str, bool)]
    has_float, has_none, has_int = float in members, type(None) in members, int in members

    def read(plain: Plain) -> Any:
        if plain is None and has_none:
            return None
        if has_float and ((type(plain) is str and plain in NOT_FINITE) or (type(plain) is int and not has_int)):
            return number(plain)
        if type(plain) in members:
            return plain
        for reader in structured:
            return reader(plain)
        raise TypeError(f"{plain!r} is none of {members}")

    return read


def _record_decoder(kind: type) -> Callable[[Plain], Any]:
    hints = get_type_hints(kind)
    readers = {field.name: _decoder(hints[field.name]) for field in dataclasses.fields(kind)}

    def read(plain: Plain) -> Any:
        if not isinstance(plain, dict):
            raise TypeError(f"{plain!r} is no {kind.__name__}")
        values = {name: readers[name](value) for name, value in plain.items() if name in readers}
        sentences = plain.get(SAID)
        if isinstance(sentences, dict):
            values.update({name: _whole(values[name], kept) for name, kept in sentences.items() if name in values})
        return kind(**values)

    return read
