"""The command of a trial: a template, and what it becomes with values in it.

    python train.py --lr {lr} [--momentum {momentum}]        one placeholder a parameter, a part that may be missing
    python train.py {parameters}                             --lr 0.1 --momentum 0.9
    python train.py {overrides}                              lr=0.1 momentum=0.9

`{{` and `}}` are braces, as in Python.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

ALL, OVERRIDES = "parameters", "overrides"
_FIELD = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_OPENING, _CLOSING = "\x02", "\x03"


def split(text: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """The words of a command, and the parts in brackets that hold a placeholder, as (first, behind the last)."""
    marked = re.sub(r"\[([^\[\]]*\{\w+\}[^\[\]]*)\]", rf" {_OPENING} \1 {_CLOSING} ", text)
    words: list[str] = []
    parts: list[tuple[int, int]] = []
    begin = 0
    for word in shlex.split(marked):
        if word == _OPENING:
            begin = len(words)
        elif word == _CLOSING:
            parts.append((begin, len(words)))
        else:
            words.append(word)
    return tuple(words), tuple(parts)


def placeholders(word: str) -> set[str]:
    """The names in one word of a command."""
    return {found[1] for found in _FIELD.finditer(word) if found[1]}


def filled(
    command: Sequence[str], values: Mapping[str, Any], *, optional: Sequence[tuple[int, int]] = ()
) -> tuple[str, ...]:
    """The command with these values.

    >>> filled(["train", "--lr", "{lr}"], {"lr": 0.5})
    ('train', '--lr', '0.5')
    """
    missing = {
        at
        for first, behind in optional
        if any(name not in values for word in command[first:behind] for name in placeholders(word))
        for at in range(first, behind)
    }
    words: list[str] = []
    for at, word in enumerate(command):
        if at in missing:
            continue
        if word == "{" + ALL + "}":
            words += [part for name, value in values.items() for part in _option(name, value)]
        elif word == "{" + OVERRIDES + "}":
            words += [f"{name}={written(value)}" for name, value in values.items()]
        else:
            words.append(replaced(word, values))
    return tuple(words)


def replaced(word: str, values: Mapping[str, Any]) -> str:
    """One word with its placeholders filled; a parameter that does not exist now leaves nothing."""

    def one(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        return written(values[found[1]]) if found[1] in values else ""

    return _FIELD.sub(one, word)


def written(value: Any) -> str:
    """A value as a command line carries it: floats to their last digit, true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def _option(name: str, value: Any) -> list[str]:
    flag = f"--{name}"
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, written(value)]
