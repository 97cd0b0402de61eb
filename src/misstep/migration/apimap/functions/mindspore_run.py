"""A call of MindSpore on plain values: its result and its gradients, as NumPy's."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import mint, nn, ops

from misstep.migration.apimap.functions import mindspore_surface
from misstep.migration.apimap.rewrite import Rewrite, arrange
from misstep.migration.apimap.values import DType, Tensorlike

_PLACES = {"mindspore": mindspore, "mint": mint, "nn": nn, "ops": ops, "True": True}


def run(rewrite: Rewrite, given: dict[str, Any], *, in_place: bool, narrow: bool = False) -> tuple[Any, str]:
    """What the call returns as plain values, or why it broke. Reading the result waits for it: MindSpore computes
    behind the caller's back and would raise later."""
    try:
        values = {key: theirs(value, narrow=narrow) for key, value in given.items()}
        result = _called(rewrite, values)
        if in_place and result is None:
            result = next(iter(values.values()))
        return plain(result), ""
    except Exception as wrong:  # every failure of a candidate is an answer
        _settle()
        return None, _shortly(wrong)


def gradients(rewrite: Rewrite, given: dict[str, Any], weights: list[Any]) -> tuple[list[Any], str]:
    """To every float tensor among the arguments, in order."""
    try:
        values = {key: theirs(value) for key, value in given.items()}
        leaves: list[Any] = []
        _floats(values, leaves)

        def total(*floats: Any) -> Any:
            pool = list(floats)
            outputs: list[Any] = []
            _floats(_called(rewrite, _replaced(values, pool)), outputs)
            found = mindspore.Tensor(0.0, mindspore.float32)
            for one, weight in zip(outputs, weights):
                found = found + (one.astype(mindspore.float32) * mindspore.Tensor(weight)).sum()
            return found

        answer = mindspore.grad(total, tuple(range(len(leaves))))(*leaves)
        answer = answer if isinstance(answer, tuple) else (answer,)
        return [plain(one) for one in answer], ""
    except Exception as wrong:
        _settle()
        return [], _shortly(wrong)


def _settle() -> None:
    """Wait for what is still being computed: a kernel that fails late would raise out of the next call."""
    for _ in range(3):
        try:
            mindspore.runtime.synchronize()
            return
        except Exception:
            continue


def _called(rewrite: Rewrite, values: dict[str, Any]) -> Any:
    if rewrite.template:
        text = rewrite.template.format(**{key: f"_{key}" for key in values})
        return eval(text, {**_PLACES, **{f"_{key}": value for key, value in values.items()}})
    args, keywords = arrange(values, rewrite)
    for name, value in rewrite.add.items():
        if name not in keywords and not _filled(rewrite, values, name):
            keywords[name] = value
    function = mindspore_surface.resolve(rewrite.target)
    if not callable(function):
        return getattr(args[0], rewrite.target.rpartition(".")[2])
    return function(*args, **keywords)


def _filled(rewrite: Rewrite, values: dict[str, Any], name: str) -> bool:
    return any(rewrite.names.get(one, one) == name for one in values)


def _floats(value: Any, into: list[Any]) -> None:
    if isinstance(value, mindspore.Tensor):
        if value.dtype == mindspore.float32:
            into.append(value)
    elif isinstance(value, dict):
        for one in value.values():
            _floats(one, into)
    elif isinstance(value, list | tuple):
        for one in value:
            _floats(one, into)


def _replaced(value: Any, pool: list[Any]) -> Any:
    if isinstance(value, mindspore.Tensor):
        return pool.pop(0) if value.dtype == mindspore.float32 else value
    if isinstance(value, dict):
        return {key: _replaced(one, pool) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_replaced(one, pool) for one in value)
    return value


def _shortly(wrong: Exception) -> str:
    text = " ".join(str(wrong).split())
    return f"{type(wrong).__name__}: {text}"[:160]


def theirs(value: Any, *, narrow: bool = False) -> Any:
    """A plain value (arrays, names of types, numbers, lists) as MindSpore takes it; `narrow` makes int64 int32."""
    if isinstance(value, Tensorlike):
        array = value.array
        if narrow and array.dtype == np.int64:
            array = array.astype(np.int32)
        return mindspore.Tensor(np.array(array))
    if isinstance(value, DType):
        return getattr(mindspore, {"bool": "bool_"}.get(value.name, value.name))
    if isinstance(value, dict):
        return {key: theirs(one, narrow=narrow) for key, one in value.items()}
    if isinstance(value, list):
        return type(value)(theirs(one, narrow=narrow) for one in value)
    if isinstance(value, tuple):
        return tuple(theirs(one, narrow=narrow) for one in value)
    return value


def plain(result: Any) -> Any:
    """What a call returned, as arrays and plain values; reading them waits for MindSpore to compute them."""
    if isinstance(result, mindspore.Tensor):
        return Tensorlike(np.array(result.asnumpy()))
    if isinstance(result, list | tuple):
        return [plain(one) for one in result]
    if isinstance(result, type(mindspore.float32)):
        return DType(str(result).lower().rstrip("_"))
    return result
