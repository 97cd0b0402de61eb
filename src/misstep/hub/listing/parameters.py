"""The parameters of a run, read from what was typed and from the configuration file it names.

    python train.py --lr 3e-4 --amp --no-bias model.width=64 --config base.yaml
    → lr 0.0003, amp yes, bias no, model.width 64, and whatever base.yaml says and nobody overrode

What was typed wins. A configuration file counts only as it was when the run began: one that was written since, or
lies on another machine, says nothing about this run.
"""

from __future__ import annotations

import json
import re
import socket
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Value = float | str | bool

MOST = 64
LONGEST = 80
LARGEST_FILE = 64 * 1024
_NUMBER = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_ASSIGNED = re.compile(r"\+{0,2}([A-Za-z_][\w.\-/]*)=(.*)", re.S)
_SECRET = re.compile(r"token|secret|passw|api_?key|credential", re.I)
_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_CONFIGURATION = (".json", ".toml", ".yaml", ".yml")


def parameters_of(
    command: Sequence[str], *, directory: str = "", started: float = 0.0, host: str = ""
) -> dict[str, Value]:
    """By name, in the order in which they were given; those of a file behind those that were typed."""
    typed = dict(_typed(_arguments(command)))
    found = dict(typed)
    if host == socket.gethostname() and directory:
        for value in typed.values():
            if isinstance(value, str) and value.endswith(_CONFIGURATION):
                found |= {name: one for name, one in _configured(Path(directory) / value, started) if name not in typed}
    kept = [(name, value) for name, value in found.items() if not _SECRET.search(name)]
    return dict(kept[:MOST])


def _arguments(command: Sequence[str]) -> list[str]:
    """What follows the script or the module: options before it belong to Python or to a launcher."""
    for at, word in enumerate(command):
        if word.endswith(".py"):
            return list(command[at + 1 :])
        if word == "-m" and at + 1 < len(command) and not command[at + 1].startswith("torch.distributed"):
            return list(command[at + 2 :])
    return list(command[1:])


def _typed(words: list[str]) -> Iterator[tuple[str, Value]]:
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        head, equals, tail = word.partition("=")
        if _OPTION.fullmatch(head):
            name = head.lstrip("-").replace("-", "_")
            values = [tail] if equals else []
            while not equals and at < len(words) and not _begins(words[at]):
                values.append(words[at])
                at += 1
            if values:
                yield name, value_of(" ".join(values))
            else:
                yield (name[3:], False) if name.startswith("no_") else (name, True)
        elif assigned := _ASSIGNED.fullmatch(word):
            yield assigned[1], value_of(assigned[2])


def _begins(word: str) -> bool:
    """Whether this word begins a parameter of its own; `-1e-3` does not."""
    return _OPTION.fullmatch(word.partition("=")[0]) is not None or _ASSIGNED.fullmatch(word) is not None


def value_of(text: str) -> Value:
    """`3e-4` is a number, `true` a yes or no, everything else a word."""
    if _NUMBER.fullmatch(text):
        number = float(text.replace("_", ""))
        return int(number) if number.is_integer() and abs(number) < 1e15 and "." not in text else number
    return _WORDS.get(text.lower(), text[:LONGEST])


def _configured(path: Path, started: float) -> Iterator[tuple[str, Value]]:
    try:
        seen = path.stat()
        if seen.st_size > LARGEST_FILE or seen.st_mtime > started or not path.is_file():
            return
        plain = _parsed(path)
    except (OSError, ValueError, RecursionError):
        return
    if isinstance(plain, Mapping):
        yield from _flat(plain, "")


def _parsed(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".toml":
        return tomllib.loads(text)
    try:
        import yaml
    except ImportError:  # comes with tuning; without it a YAML file adds no columns
        return None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _flat(plain: Mapping[Any, Any], head: str, depth: int = 0) -> Iterator[tuple[str, Value]]:
    for key, value in plain.items():
        name = f"{head}{key}"
        if isinstance(value, Mapping):
            if depth < 6:
                yield from _flat(value, f"{name}.", depth + 1)
        elif isinstance(value, bool | int | float):
            yield name, value
        elif isinstance(value, str):
            yield name, value_of(value)
        elif isinstance(value, list) and len(value) <= 8 and all(isinstance(one, int | float | str) for one in value):
            yield name, " ".join(map(str, value))[:LONGEST]
