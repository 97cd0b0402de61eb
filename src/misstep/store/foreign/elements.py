"""The names of element types, as every format spells them, and what numpy calls them.

Our own names are those of the statistics file (`float32`, `bfloat16`, `float8_e4m3fn` …). A format that cannot hold a
type stores its bits under another one and says so in its metadata, so that every value comes back bit for bit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

PACKED_INT4 = "int4x2"
"""Two 4-bit integers in one byte, as quantised MindSpore checkpoints hold them; the array is int8, bits as stored."""

_EXTRA = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "int4",
        "uint4",
    )
    if hasattr(ml_dtypes, name)
}
_EXTRA_NAMES = {dtype: name for name, dtype in _EXTRA.items()}

_SAFETENSORS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}
_SAFETENSORS_NAMES = {ours: theirs for theirs, ours in _SAFETENSORS.items()}

_MINDSPORE = {
    "Int8": "int8",
    "UInt8": "uint8",
    "Int16": "int16",
    "UInt16": "uint16",
    "Int32": "int32",
    "UInt32": "uint32",
    "Int64": "int64",
    "UInt64": "uint64",
    "Float16": "float16",
    "Float32": "float32",
    "Float64": "float64",
    "Bool": "bool",
    "BFloat16": "bfloat16",
    "Int4": PACKED_INT4,
    "Complex64": "complex64",
    "Complex128": "complex128",
    "Float8E4M3FN": "float8_e4m3fn",
    "Float8E5M2": "float8_e5m2",
}
_MINDSPORE_NAMES = {ours: theirs for theirs, ours in _MINDSPORE.items()}

_TORCH_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "int8",
    "QUInt8Storage": "uint8",
    "QInt32Storage": "int32",
    "UntypedStorage": "uint8",
}

_TORCH_ALIASES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "qint8": "int8",
    "quint8": "uint8",
    "qint32": "int32",
}

_BITS: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}


@lru_cache(maxsize=256)
def dtype_named(name: str) -> np.dtype[Any] | None:
    """The numpy type behind one of our names; None when there is none."""
    if name == PACKED_INT4:
        return np.dtype(np.int8)
    extra = _EXTRA.get(name)
    if extra is not None:
        return extra
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return None
    return dtype if dtype.kind in "biufcSU" else None


@lru_cache(maxsize=256)
def name_of(dtype: np.dtype[Any]) -> str:
    """`bfloat16` for ml_dtypes' bfloat16, `float32` for both byte orders of it."""
    return _EXTRA_NAMES.get(dtype, dtype.name)


def needs_ml_dtypes(name: str) -> bool:
    """True for the types a plain .npy header cannot name."""
    return name in _EXTRA


def bits_of(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as unsigned integers: what a format that lacks the type stores."""
    # Not ascontiguousarray, which makes a scalar one-dimensional.
    dense = array if array.flags.c_contiguous else array.copy(order="C")
    return dense.view(_BITS[array.dtype.itemsize])


def from_safetensors(name: str) -> str | None:
    return _SAFETENSORS.get(name)


def to_safetensors(name: str) -> str | None:
    return _SAFETENSORS_NAMES.get(name)


def from_mindspore(name: str) -> str | None:
    """`Float32`, `BFloat16`, and the lower-case spellings of older dumps."""
    return _MINDSPORE.get(name) or (name.lower() if dtype_named(name.lower()) is not None else None)


def to_mindspore(name: str) -> str | None:
    return _MINDSPORE_NAMES.get(name)


def from_torch_storage(name: str) -> str | None:
    return _TORCH_STORAGES.get(name)


def to_torch_storage(name: str) -> str | None:
    """`FloatStorage` for float32; None for types that have no storage of their own."""
    plain = (theirs for theirs, ours in _TORCH_STORAGES.items() if ours == name and not theirs.startswith(("Q", "U")))
    return next(plain, None)


def from_torch(name: str) -> str | None:
    """`torch.float32`, `float32`, `half` → our name; None for a word that is no element type."""
    short = name.removeprefix("torch.")
    short = _TORCH_ALIASES.get(short, short)
    return short if dtype_named(short) is not None else None


def is_float(name: str) -> bool:
    return name.startswith(("float", "bfloat", "complex"))
