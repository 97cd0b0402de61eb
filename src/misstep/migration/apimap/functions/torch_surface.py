"""What the installed PyTorch offers: names, callables, and the overloads of each."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as functional

from misstep.migration.apimap.signatures import MISSING, Parameter, Signature, of_callable, of_doc, plain

HOMES = ("torch", "torch.nn.functional", "torch.Tensor", "torch.linalg", "torch.fft", "torch.special")
"""Where functions and methods are looked for; layers, optimizers and schedules have rooms of their own."""

_NO_COUNTERPART = ("out", "device", "layout", "pin_memory", "requires_grad", "memory_format", "non_blocking")
"""Where and how a tensor is kept: MindSpore says that elsewhere, or not at all."""


def names() -> Iterator[str]:
    """Every public function and method, in order."""
    for home in HOMES:
        place = resolve(home)
        for word in sorted(dir(place)):
            if word.startswith("_") or word in ("Optional",):
                continue
            found = inspect.getattr_static(place, word, None)
            if home == "torch.Tensor":
                if callable(found) or hasattr(found, "__get__"):
                    yield f"{home}.{word}"
            elif callable(getattr(place, word)) and not inspect.isclass(getattr(place, word)):
                yield f"{home}.{word}"


def resolve(name: str) -> Any:
    """The thing a dotted name means."""
    found: Any = torch
    for word in name.split(".")[1:]:
        found = getattr(found, word)
    return found


@functools.cache
def overloads(name: str) -> tuple[Signature, ...]:
    """The ways to call it: from the source, else from the operator's schemas, else from the docstring."""
    home, _, word = name.rpartition(".")
    method = home == "torch.Tensor"
    try:
        function = resolve(name)
    except AttributeError:
        return ()
    if home == "torch.nn.functional":
        function = getattr(functional, f"_{word}", function) if not inspect.isfunction(function) else function
    known = of_callable(function) if name != "torch.einsum" else None
    if known is not None and any(not one.star for one in known.parameters) and not method:
        return (_without_places(known),)
    operator = {"torch.linalg": f"linalg_{word}", "torch.fft": f"fft_{word}", "torch.special": f"special_{word}"}
    if home == "torch" and word in _SPOKEN:
        return (Signature(_SPOKEN[word]),)
    found = list(_schemas(operator.get(home, word), method=method))
    if not found:
        found = [_without_places(one) for one in of_doc(getattr(function, "__doc__", ""), word)]
    if not found and known is not None:
        found = [_without_places(known)]
    return tuple(dict.fromkeys(found))


def _schemas(operator: str, *, method: bool) -> Iterator[Signature]:
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{operator}"):
        if any(one.is_out for one in schema.arguments) or not schema.arguments:
            continue
        first = schema.arguments[0]
        makes = operator in _FACTORIES and first.name in ("size", "end", "start", "n", "high")
        if str(first.type) in _PLAIN and not makes:
            continue  # `aten::max.int` and its like are Python's, not tensors'
        parameters = []
        for at, one in enumerate(schema.arguments):
            if one.name in _NO_COUNTERPART or (method and at == 0):
                continue
            name = "input" if one.name == "self" else one.name
            default = plain(one.default_value) if one.has_default_value() else MISSING
            parameters.append(Parameter(name, default, _kind(str(one.type)), one.kwarg_only))
        yield Signature(tuple(parameters))


_PLAIN = ("str", "List[str]", "List[int]", "List[float]", "int", "float", "bool")
_FACTORIES = frozenset(
    [
        "zeros",
        "ones",
        "empty",
        "full",
        "rand",
        "randn",
        "randint",
        "randperm",
        "arange",
        "linspace",
        "logspace",
        "eye",
        "range",
    ]
)


_SPOKEN = {
    "einsum": (Parameter("equation", kind="str"), Parameter("operands", star=True)),
    "full": (Parameter("size"), Parameter("fill_value"), Parameter("dtype", None, keyword_only=True)),
}
"""Neither the source nor a schema says how they are called."""


def _kind(text: str) -> str:
    """`Optional[List[int]]` as `int[]?`-less `int[]`: what a value must look like."""
    text = text.removeprefix("Optional[").removesuffix("]") if text.startswith("Optional[") else text
    if text.startswith("List["):
        return text[5:-1] + "[]"
    return {"number": "Scalar"}.get(text, text)


def _without_places(one: Signature) -> Signature:
    return Signature(tuple(p for p in one.parameters if p.name not in (*_NO_COUNTERPART, "generator", "_stacklevel")))


def fits(value: Any, kind: str) -> bool:
    """Whether a value can be what a schema asks for."""
    if value is None:
        return True
    if kind == "Tensor":
        return isinstance(value, torch.Tensor)
    if kind == "Tensor[]":
        return isinstance(value, list | tuple) and all(isinstance(one, torch.Tensor) for one in value)
    if kind in ("int", "SymInt"):
        return isinstance(value, int) and not isinstance(value, bool) and not isinstance(value, torch.dtype)
    if kind in ("int[]", "SymInt[]"):
        return isinstance(value, int) or (
            isinstance(value, list | tuple) and all(isinstance(one, int) for one in value)
        )
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return isinstance(value, str)
    if kind in ("float", "Scalar"):
        return isinstance(value, int | float | complex)
    return True


def bound(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Signature, dict[str, Any]] | None:
    """The overload these arguments take, with the arguments by name."""
    keywords = {key: value for key, value in keywords.items() if key not in (*_NO_COUNTERPART, "generator")}
    for one in overloads(name):
        found = one.bind(args, keywords, fits)
        if found is not None:
            return one, found
    return None
