"""What each layer was constructed with: the arguments bound to the signature, defaults included.

Attributes cannot tell: many layers keep an argument only inside an operator, or not at all. While `remembering` is
open, the constructors of the given classes note what they are called with.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Arguments = tuple[dict[str, Any], frozenset[str]]


class Constructions:
    """The arguments of everything constructed so far, by object."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], dict[str, Any], set[str], bool]] = {}

    def of(self, thing: Any) -> Arguments:
        held = self._held.get(id(thing))
        return (dict(held[1]), frozenset(held[2])) if held is not None and held[0]() is thing else ({}, frozenset())

    @contextmanager
    def remembering(self, classes: Iterable[type]) -> Iterator[None]:
        changed: list[tuple[type, Callable[..., None]]] = []
        for one in dict.fromkeys(classes):
            init = one.__dict__.get("__init__")
            if inspect.isfunction(init):
                changed.append((one, init))
                setattr(one, "__init__", self._noting(init))  # noqa: B010  (mypy refuses the plain assignment)
        try:
            yield
        finally:
            for one, init in changed:
                setattr(one, "__init__", init)  # noqa: B010

    def _noting(self, init: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(behind(init))

        @functools.wraps(init)
        def noted(this: Any, *args: Any, **kwargs: Any) -> None:
            try:
                self._note(this, signature, args, kwargs)
            except TypeError:
                pass  # the constructor itself says what is wrong with the call
            init(this, *args, **kwargs)

        return noted

    def _note(self, this: Any, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bound = signature.bind(this, *args, **kwargs)
        variadic = {
            name for name, one in signature.parameters.items() if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        }
        spelled = set(bound.arguments)
        bound.apply_defaults()
        found = {name: value for name, value in list(bound.arguments.items())[1:] if name not in variadic}
        held = self._held.get(id(this))
        if held is not None and held[0]() is this:  # a constructor calling its ancestor's: the outer one's words win
            for name, value in found.items():
                if name not in held[1]:
                    held[1][name] = value
                    if held[3] and name in spelled:  # `def __init__(self, *args)`: only the ancestor names them
                        held[2].add(name)
        else:
            self._held[id(this)] = (weakref.ref(this), found, spelled & found.keys(), bool(variadic))


def behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under decorators that hide its signature in a closure, as MindSpore's optimizers do."""
    while "*args" in str(inspect.signature(function)) and getattr(function, "__closure__", None):
        inner = next((cell.cell_contents for cell in function.__closure__ or () if callable(cell.cell_contents)), None)
        if not inspect.isfunction(inner):
            break
        function = inner
    return function
