"""The file Print writes and `parse_print` reads, laid out as MindSpore's print.proto, without protobuf.

    Print       { repeated Value value = 1 }
    Value       { oneof { string desc = 1; TensorProto tensor = 2 } }
    TensorProto { repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3 }

Two such messages one after the other are one message with the values of both, so printing is appending.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.foreign.protobuf import BYTES, Malformed, encode_bytes, encode_number, fields, signed, text, varints

Array: TypeAlias = NDArray[Any]

_TYPES: dict[str, Any] = {
    "Bool": np.bool_,
    **{f"{kind}{bits}": np.dtype(f"{kind.lower()}{bits}") for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
    "Float16": np.float16,
    "Float32": np.float32,
    "Float64": np.float64,
    "BFloat16": ml_dtypes.bfloat16,
    "Complex64": np.complex64,
    "Complex128": np.complex128,
}
TYPE_NAMES: dict[str, str] = {str(np.dtype(kind)): name for name, kind in _TYPES.items()}
"""MindSpore's name of a numpy type: int32 is Int32."""


def type_name(array: Array) -> str:
    """What MindSpore calls the type of this array."""
    return TYPE_NAMES.get(str(array.dtype), str(array.dtype))


def append(path: Path, values: Iterable[str | Array]) -> None:
    """Add one Print's values to the file, in one write."""
    message = b"".join(encode_bytes(1, _value(value)) for value in values)
    path.parent.mkdir(parents=True, exist_ok=True)
    # One write to a file opened for appending: several ranks may print into one file without mixing their values.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    try:
        os.write(descriptor, message)
    finally:
        os.close(descriptor)


def parse_print(print_file_name: str | os.PathLike[str]) -> list[str | int | float | bool | Array]:
    """Everything in a file Print wrote, in order: texts, arrays, and scalar tensors as numbers.

    >>> parse_print("print.pb")
    ['print Tensor x:', array([[1], [1]], dtype=int32)]
    """
    path = Path(print_file_name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {str(path)!r}: {error.strerror or error}", path=str(path)) from None
    if not data:
        raise FormatError(f"{path} is empty: nothing was printed, or the training did not reach Print", path=str(path))
    try:
        return [_parsed(data, value.value, value.end) for value in fields(data) if value.number == 1]
    except (Malformed, KeyError, ValueError) as error:
        raise FormatError(f"{path} is no file of Print: {error}", path=str(path)) from None


def _value(value: str | Array) -> bytes:
    if isinstance(value, str):
        return encode_bytes(1, value.encode())
    dims = b"".join(encode_number(1, size) for size in value.shape)
    content = np.ascontiguousarray(value).tobytes()
    return encode_bytes(2, dims + encode_bytes(2, type_name(value).encode()) + encode_bytes(3, content))


def _parsed(data: bytes, start: int, end: int) -> str | int | float | bool | Array:
    for each in fields(data, start, end):
        if each.number == 1:
            return text(data, each)
        if each.number == 2:
            return _tensor(data, each.value, each.end)
    raise ValueError(f"a value at byte {start} is neither text nor tensor")


def _tensor(data: bytes, start: int, end: int) -> int | float | bool | Array:
    dims: list[int] = []
    kind, content = "", b""
    for each in fields(data, start, end):
        if each.number == 1:
            packed = varints(data, each.value, each.end) if each.kind == BYTES else [each.value]
            dims.extend(signed(size) for size in packed)
        elif each.number == 2:
            kind = text(data, each)
        elif each.number == 3:
            content = data[each.value : each.end]
    if kind not in _TYPES:
        raise ValueError(f"unknown tensor type {kind!r}")
    array = np.frombuffer(content, _TYPES[kind]).reshape(dims).copy()
    scalar: int | float | bool | Array = array.item() if not dims else array
    return scalar
