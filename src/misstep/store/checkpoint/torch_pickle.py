"""The structure inside a .pth, walked without running anything that was pickled.

A pickle is a little program that names functions and calls them. Here every name is looked up in one table, which maps
the few a checkpoint needs to records of ours, never to the real function; any other name is refused, by name. The table
cannot be changed, and what it makes belongs to one reading alone.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.boundary import Damaged, reading, whole_number
from misstep.store.checkpoint.pickle_machine import Buildable, Machine
from misstep.store.foreign.elements import from_torch, from_torch_storage

_MOST_DIMENSIONS = 64


@dataclass(frozen=True, slots=True)
class Storage:
    """A block of memory in the file, not yet read."""

    dtype: str
    key: str
    count: int


@dataclass(frozen=True, slots=True)
class Type:
    """`torch.float32`, `torch.FloatStorage`: an element type."""

    dtype: str


@dataclass(slots=True)
class Tensor(Buildable):
    """A view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    trainable: bool
    dtype: str
    quantized: tuple[float, int] | None = None
    conjugated: bool = False
    negated: bool = False


class _ElementType(Buildable):
    """A pickled numpy dtype: a letter, a width, and a byte order that arrives afterwards."""

    def __init__(self, kind: object) -> None:
        if not isinstance(kind, str) or not re.fullmatch(r"[<>=|]?[A-Za-z]\d{0,5}", kind):
            raise Damaged("the name of an element type of numpy")
        self.dtype = np.dtype(kind)
        if self.dtype.hasobject:
            raise FormatError("the checkpoint holds a numpy array of Python objects; save plain numbers instead")

    def take_state(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class Array(Buildable):
    """A numpy array inside the pickle, rebuilt from its bytes."""

    def __init__(self, kind: object = None, raw: object = b"") -> None:
        self.value: NDArray[Any] = np.empty(0, np.uint8) if kind is None else _values(kind, raw).reshape(())

    def take_state(self, state: Any) -> None:
        _, shape, kind, fortran, raw = state
        self.value = _values(kind, raw).reshape(_sizes(shape), order="F" if fortran else "C")

    def load(self) -> NDArray[Any]:
        return self.value


def _values(kind: object, raw: object) -> NDArray[Any]:
    if not isinstance(kind, _ElementType) or not isinstance(raw, str | bytes):
        raise Damaged("an element type and the bytes of an array")
    return np.frombuffer(raw.encode("latin1") if isinstance(raw, str) else raw, kind.dtype)


class StructureReader:
    """Walks pickles of one file, one after another; every global they may name is in `_TABLE`."""

    def __init__(self, data: bytes | memoryview, path: Path, *, what: str = "data.pkl", at: int = 0) -> None:
        self._data, self._path, self._what = data, path, what
        self.at = at
        """Where the next pickle begins."""
        self.storages: dict[str, Storage] = {}

    def load(self) -> object:
        """What the pickle that begins here describes."""
        machine = Machine(self._data, self, at=self.at)
        with reading(self._path, self._what):
            found: object = machine.run()
            self.at = machine.at
            return found

    def find(self, module: str, name: str) -> Any:
        known = _TABLE.get(f"{module.replace('__builtin__', 'builtins')}.{name}")
        if known is not None:
            return known
        if module in ("torch", "torch.storage", "torch.cuda"):
            dtype = from_torch_storage(name) or from_torch(name)
            if dtype is not None:
                return Type(dtype)
            if name.startswith(("float", "int", "uint", "bits", "q", "complex")):
                return Type(name)
        if module in ("torch._utils", "torch._tensor") and name.startswith("_rebuild"):
            return _opaque(name.removeprefix("_rebuild_").removesuffix("_tensor") or "unknown")
        raise FormatError(
            f"{self._path} holds a pickled {module}.{name}; unpickling it would run that code, so it is refused. "
            f"Save the tensors alone: torch.save(model.state_dict(), path)",
            path=str(self._path),
        )

    def persistent(self, saved: Any) -> Storage:
        if not (isinstance(saved, tuple) and len(saved) >= 5 and saved[0] == "storage" and isinstance(saved[1], Type)):
            raise Damaged("a reference to a storage")
        if not isinstance(saved[2], str | int) or len(str(saved[2])) > 200:
            raise Damaged("the name of a storage")
        storage = Storage(saved[1].dtype, str(saved[2]), whole_number(saved[4], "elements of a storage"))
        return self.storages.setdefault(storage.key, storage)


def _sizes(given: object) -> tuple[int, ...]:
    """A shape, strides: a short row of whole numbers."""
    if not isinstance(given, tuple | list) or len(given) > _MOST_DIMENSIONS:
        raise Damaged(f"a shape of at most {_MOST_DIMENSIONS} dimensions")
    return tuple(whole_number(size, "a size") for size in given)


def _tensor(
    storage: object,
    offset: object,
    shape: object,
    stride: object,
    trainable: object = False,
    hooks: object = None,
    marks: object = None,
) -> Tensor:
    if not isinstance(storage, Storage):
        raise Damaged("a tensor's storage")
    sizes, steps = _sizes(shape), _sizes(stride)
    tensor = Tensor(storage, whole_number(offset, "an offset"), sizes, steps, trainable is True, storage.dtype)
    # A view that torch conjugates or negates when it is read: the bits in the file are those before.
    if isinstance(marks, dict):
        tensor.conjugated, tensor.negated = marks.get("conj") is True, marks.get("neg") is True
    return tensor


@dataclass(frozen=True, slots=True)
class Opaque(Buildable):
    """A tensor of a kind that is not laid out element by element: sparse, nested, of a user's class."""

    kind: str


def _opaque(kind: str) -> Callable[..., Opaque]:
    return lambda *given: Opaque(kind)


def _tensor_typed(
    storage: object,
    offset: object,
    shape: object,
    stride: object,
    trainable: object,
    hooks: object,
    dtype: object,
    *_: object,
) -> Tensor:
    if not isinstance(dtype, Type):
        raise Damaged("an element type")
    tensor = _tensor(storage, offset, shape, stride, trainable)
    tensor.dtype = dtype.dtype
    return tensor


def _quantized(storage: object, offset: object, shape: object, stride: object, scheme: object, *_: object) -> Tensor:
    tensor = _tensor(storage, offset, shape, stride)
    if isinstance(scheme, tuple) and len(scheme) == 3:
        scale, zero = scheme[1:]
        tensor.quantized = (scale, zero) if isinstance(scale, float) and isinstance(zero, int) else None
    return tensor


def _parameter(tensor: object, trainable: object, *_: object) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise Damaged("the tensor of a parameter")
    tensor.trainable = trainable is True
    return tensor


def _of_type(rebuild: object, kind: object, given: object, state: object) -> object:
    if rebuild in _REBUILD and isinstance(given, tuple):
        return rebuild(*given)
    return Opaque("unknown")


def _counted(*given: Any) -> dict[Any, Any]:
    return dict(given[-1]) if given and isinstance(given[-1], dict) else {}


class _Namespace(SimpleNamespace, Buildable):
    """argparse.Namespace and its like: attributes, no behaviour."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def take_state(self, state: Any) -> None:
        if isinstance(state, dict) and all(isinstance(name, str) for name in state):
            vars(self).update(state)

    __hash__ = object.__hash__  # type: ignore[assignment]


def _ordered(items: object = ()) -> OrderedDict[Any, Any]:
    """Python 2 wrote the pairs into the call; later ones set them afterwards."""
    made: OrderedDict[Any, Any] = OrderedDict()
    for pair in items if isinstance(items, list | tuple) else ():
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str | int)):
            raise Damaged("pairs of a name and a value")
        made[pair[0]] = pair[1]
    return made


def _nothing(*_: object) -> None:
    """Stands for a factory that a defaultdict was pickled with; it is never called."""


def _encoded(text: object, encoding: object = "latin1") -> bytes:
    if not isinstance(text, str):
        raise Damaged("a text to encode")
    return text.encode("latin1" if encoding == "latin1" else "utf-8")


def _path_of(*parts: object) -> str:
    return "/".join(_word(part) for part in parts)


def _described(*parts: object) -> str:
    return ":".join(_word(part) for part in parts)


def _word(part: object) -> str:
    if not isinstance(part, str | int) or len(str(part)) > 4096:
        raise Damaged("a word")
    return str(part)


def _row(items: object = ()) -> list[Any]:
    return list(items) if isinstance(items, list | tuple) else []


def _bytes(given: object = b"", *_: object) -> bytes:
    return bytes(given) if isinstance(given, bytes | list) else b""


_REBUILD: tuple[Callable[..., Tensor], ...] = (_tensor, _tensor_typed, _quantized, _parameter)

_NAMES: dict[str, Any] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_typed,
    "torch._utils._rebuild_qtensor": _quantized,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.Tensor": Type("float32"),
    "torch.nn.parameter.Parameter": Type("float32"),
    "torch.Size": lambda sizes=(): _sizes(sizes),
    "torch.device": _described,
    "torch.per_tensor_affine": "per_tensor_affine",
    "torch.per_channel_affine": "per_channel_affine",
    "torch.serialization._get_layout": _described,
    "collections.OrderedDict": _ordered,
    "collections.defaultdict": lambda *_: {},
    "collections.Counter": _counted,
    "argparse.Namespace": _Namespace,
    "types.SimpleNamespace": _Namespace,
    "builtins.set": _row,
    "builtins.frozenset": _row,
    "builtins.complex": lambda real=0.0, imaginary=0.0: complex(real, imaginary),
    "builtins.slice": lambda *parts: list(parts),
    "builtins.bytearray": _bytes,
    **{f"builtins.{name}": _nothing for name in ("list", "dict", "int", "float", "str", "bool", "tuple")},
    "_codecs.encode": _encoded,
    "pathlib.PosixPath": _path_of,
    "pathlib.WindowsPath": _path_of,
    "numpy.dtype": lambda kind, *_: _ElementType(kind),
    "numpy.ndarray": "numpy.ndarray",
    "numpy.core.multiarray._reconstruct": lambda *_: Array(),
    "numpy._core.multiarray._reconstruct": lambda *_: Array(),
    "numpy.core.multiarray.scalar": lambda kind, raw: Array(kind, raw),
    "numpy._core.multiarray.scalar": lambda kind, raw: Array(kind, raw),
}

_TABLE: Mapping[str, Any] = MappingProxyType(_NAMES)
"""Every global a checkpoint may name, and what stands for it here."""
