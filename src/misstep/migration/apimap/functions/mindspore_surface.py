"""What the installed MindSpore offers: names, callables, and the overloads of each."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import mindspore
import mindspore.mint
import mindspore.mint.linalg
import mindspore.mint.nn.functional
import mindspore.mint.special
import mindspore.ops

from misstep.migration.apimap.signatures import Signature, of_callable, of_doc

HOMES = (
    "mindspore.mint",
    "mindspore.mint.nn.functional",
    "mindspore.mint.linalg",
    "mindspore.mint.special",
    "mindspore.ops",
    "mindspore.Tensor",
    "mindspore",
)


def resolve(name: str) -> Any:
    """The thing a dotted name means; raises AttributeError when there is none."""
    found: Any = mindspore
    for word in name.split(".")[1:]:
        found = getattr(found, word)
    return found


def exists(name: str) -> bool:
    try:
        found = resolve(name)
    except AttributeError:
        return False
    return callable(found) or inspect.isdatadescriptor(found)


@functools.cache
def overloads(name: str) -> tuple[Signature, ...]:
    """The ways to call it; empty when neither the source nor the docstring says."""
    word = name.rpartition(".")[2]
    function = resolve(name)
    known = of_callable(function)
    if known is not None and (known.parameters or not name.startswith("mindspore.Tensor.")):
        return (known,)
    said = of_doc(getattr(function, "__doc__", ""), word)
    if not said:
        said = of_doc(getattr(function, "__doc__", ""), getattr(function, "__name__", word))
    if said:
        return tuple(said)
    return (known,) if known is not None else ()


def public_names(home: str) -> list[str]:
    """The public callables of one place."""
    place = resolve(home)
    return [
        f"{home}.{word}"
        for word in sorted(dir(place))
        if not word.startswith("_") and callable(getattr(place, word, None))
    ]
