"""From a MindSpore tensor to its memory: on the CPU `data_ptr()` is the host address, and waits for the value."""

from __future__ import annotations

import ctypes
from time import perf_counter_ns
from typing import Any

import mindspore as ms
import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from misstep.adapters.step.calls import Memory
from misstep.adapters.step.nests import leaves_in
from misstep.core.stats import DTYPE_CODES, ITEM_BYTES

_NAMES: dict[Any, str] = {
    getattr(ms, ms_name): name
    for ms_name, name in (("bool_", "bool"), *((name, name) for name in DTYPE_CODES if name not in ("unknown", "bool")))
    if hasattr(ms, ms_name)
}
_CODES: dict[Any, int] = {dtype: DTYPE_CODES[name] for dtype, name in _NAMES.items()}


class Waiting:
    """Time spent until operators queued by the user's program had run: theirs, not a cost of looking."""

    ns = 0


waiting = Waiting()


def dtype_name(tensor: Any) -> str:
    return _NAMES.get(tensor.dtype, str(tensor.dtype).lower())


def is_tensor(value: Any) -> bool:
    return isinstance(value, ms.Tensor)


def leaves(value: Any) -> list[Any]:
    """Every tensor in a nest of tuples, lists, dicts and dataclasses."""
    return [value] if isinstance(value, ms.Tensor) else list(leaves_in(value, ms.Tensor))


def memory_of(tensor: Any) -> Memory | None:
    """Where the values lie; None for what has none yet (a parameter before its initialisation) or no known type."""
    start = perf_counter_ns()
    code = _CODES.get(tensor.dtype)  # waits until the type is inferred
    if code is None or getattr(tensor, "has_init", False):
        return None
    contiguous = tensor.is_contiguous()
    address = tensor.data_ptr() if contiguous else 0  # waits until the value is there
    waiting.ns += perf_counter_ns() - start
    if not contiguous:
        copy = np.ascontiguousarray(array(tensor))
        return Memory(copy.ctypes.data, copy.size, code, tuple(tensor.shape), keep=copy)
    return Memory(address, tensor.size, code, tuple(tensor.shape), tensor._version)


def wait_for(tensor: Any) -> None:
    """Until the value is there."""
    start = perf_counter_ns()
    tensor.data_ptr()
    waiting.ns += perf_counter_ns() - start


def glance_at(tensor: Any) -> Memory | None:
    """What is known of a tensor before its values are there: reading them at every cell would have Python and the
    kernels wait for each other (measured on a CNN: a third of the step)."""
    start = perf_counter_ns()
    code = _CODES.get(tensor.dtype)  # waits until the type is inferred
    waiting.ns += perf_counter_ns() - start
    if code is None or getattr(tensor, "has_init", False):
        return None
    if not tensor.is_contiguous():
        return memory_of(tensor)
    return Memory(-id(tensor), tensor.size, code, tuple(tensor.shape), tensor._version)


def array(tensor: Any) -> NDArray[Any]:
    """The live memory as numpy, without a copy; bfloat16, which numpy lacks, is copied into ml_dtypes."""
    if tensor.dtype == ms.bfloat16:
        count = tensor.size
        raw = ctypes.string_at(tensor.contiguous().data_ptr(), count * ITEM_BYTES[DTYPE_CODES["bfloat16"]])
        return np.frombuffer(raw, ml_dtypes.bfloat16).reshape(tensor.shape)
    values: NDArray[Any] = tensor.asnumpy()
    return values


def number(tensor: Any) -> float | None:
    """A loss or a learning rate as a float; one that is no scalar counts as its mean."""
    if isinstance(tensor, int | float):
        return float(tensor)
    if not is_tensor(tensor):
        return None
    if tensor.size == 1:
        wait_for(tensor)
        return float(tensor.item())
    values = np.asarray(array(tensor), np.float64)
    return float(values.mean()) if values.size else None


def scalar_of(result: Any) -> Any | None:
    """The first tensor returned, when it has one element: a loss."""
    found = leaves(result)
    return found[0] if found and found[0].size == 1 else None
