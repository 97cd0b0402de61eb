"""The structure inside a .pth, walked without running anything that was pickled.

A pickle is a little program that names functions and calls them. Here every name is looked up in one table, which maps
the few a checkpoint needs to records of ours, never to the real function; any other name is refused, by name.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.foreign.elements import from_torch, from_torch_storage


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
class Tensor:
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

    def __setstate__(self, state: object) -> None:
        """Attributes a user hung on a tensor are of no interest."""


class _ElementType:
    """A pickled numpy dtype: a letter, a width, and a byte order that arrives afterwards."""

    def __init__(self, kind: str) -> None:
        self.dtype = np.dtype(str(kind))
        if self.dtype.hasobject:
            raise FormatError("the checkpoint holds a numpy array of Python objects; save plain numbers instead")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class Array:
    """A numpy array inside the pickle, rebuilt from its bytes."""

    def __init__(self, kind: _ElementType | None = None, shape: tuple[int, ...] = (), raw: bytes = b"") -> None:
        dtype = kind.dtype if kind is not None else np.dtype("u1")
        self.value = np.frombuffer(raw, dtype).reshape(shape) if kind is not None else np.empty(0, dtype)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, raw = state
        flat = np.frombuffer(raw.encode("latin1") if isinstance(raw, str) else raw, kind.dtype)
        self.value = flat.reshape(shape, order="F" if fortran else "C")

    def load(self) -> NDArray[Any]:
        return self.value


class StructureReader(pickle.Unpickler):
    """Walks one pickle; every global it may name is in `_TABLE`."""

    def __init__(self, file: Any, path: Path) -> None:
        super().__init__(file, encoding="latin1")
        self._path = path
        self.storages: dict[str, Storage] = {}

    def load_all(self) -> object:
        try:
            return self.load()
        except FormatError:
            raise
        except Exception as wrong:
            raise FormatError(
                f"{self._path}: the structure of the checkpoint cannot be read ({type(wrong).__name__}: {wrong}); "
                f"the file is damaged or was not written by torch.save",
                path=str(self._path),
            ) from None

    def find_class(self, module: str, name: str) -> Any:
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

    def persistent_load(self, saved: Any) -> Storage:
        if not (isinstance(saved, tuple) and len(saved) >= 5 and saved[0] == "storage" and isinstance(saved[1], Type)):
            raise FormatError(f"{self._path}: a reference that is no storage: {saved!r:.80}", path=str(self._path))
        storage = Storage(saved[1].dtype, str(saved[2]), int(saved[4]))
        return self.storages.setdefault(storage.key, storage)


def _tensor(
    storage: Storage,
    offset: int,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    trainable: bool = False,
    hooks: object = None,
    marks: dict[str, Any] | None = None,
) -> Tensor:
    tensor = Tensor(storage, offset, tuple(shape), tuple(stride), bool(trainable), storage.dtype)
    # A view that torch conjugates or negates when it is read: the bits in the file are those before.
    tensor.conjugated = bool((marks or {}).get("conj"))
    tensor.negated = bool((marks or {}).get("neg"))
    return tensor


@dataclass(frozen=True, slots=True)
class Opaque:
    """A tensor of a kind that is not laid out element by element: sparse, nested, of a user's class."""

    kind: str

    def __setstate__(self, state: object) -> None:
        """What was hung on it is of no interest."""


def _opaque(kind: str) -> Callable[..., Opaque]:
    return lambda *given: Opaque(kind)


def _tensor_typed(
    storage: Storage,
    offset: int,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    trainable: bool,
    hooks: object,
    dtype: Type,
    *_: object,
) -> Tensor:
    return Tensor(storage, offset, tuple(shape), tuple(stride), bool(trainable), dtype.dtype)


def _quantized(
    storage: Storage, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], scheme: tuple[Any, ...], *_: object
) -> Tensor:
    flat = len(scheme) == 3 and isinstance(scheme[1], float) and isinstance(scheme[2], int)
    tensor = Tensor(storage, offset, tuple(shape), tuple(stride), False, storage.dtype)
    tensor.quantized = (scheme[1], scheme[2]) if flat else None
    return tensor


def _parameter(tensor: Tensor, trainable: bool, *_: object) -> Tensor:
    tensor.trainable = bool(trainable)
    return tensor


def _counted(*given: Any) -> dict[Any, Any]:
    return dict(given[-1]) if given and isinstance(given[-1], dict) else {}


class _Namespace(SimpleNamespace):
    """argparse.Namespace and its like: attributes, no behaviour."""


class _Default(defaultdict):  # type: ignore[type-arg]
    """A defaultdict whose factory is forgotten: nothing that was pickled is ever called."""

    def __init__(self, *_: object) -> None:
        super().__init__(None)


def _nothing(*_: object) -> None:
    """Stands for a factory that a defaultdict was pickled with; it is never called."""


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    return text.encode("latin1" if encoding == "latin1" else "utf-8")


def _path_of(*parts: str) -> str:
    return "/".join(parts)


def _described(*parts: Any) -> str:
    return ":".join(str(part) for part in parts)


_TABLE: dict[str, Any] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_typed,
    "torch._utils._rebuild_qtensor": _quantized,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": lambda rebuild, kind, given, state: rebuild(*given),
    "torch.Tensor": Type("float32"),
    "torch.nn.parameter.Parameter": Type("float32"),
    "torch.Size": lambda sizes=(): tuple(sizes),
    "torch.device": _described,
    "torch.per_tensor_affine": "per_tensor_affine",
    "torch.per_channel_affine": "per_channel_affine",
    "torch.serialization._get_layout": lambda name: str(name),
    "collections.OrderedDict": OrderedDict,
    "collections.defaultdict": _Default,
    "collections.Counter": _counted,
    "argparse.Namespace": _Namespace,
    "types.SimpleNamespace": _Namespace,
    "builtins.set": lambda items=(): list(items),
    "builtins.frozenset": lambda items=(): list(items),
    "builtins.complex": complex,
    "builtins.slice": lambda *parts: list(parts),
    "builtins.bytearray": lambda *given: bytes(given[0]) if given and isinstance(given[0], bytes | list) else b"",
    **{f"builtins.{name}": _nothing for name in ("list", "dict", "int", "float", "str", "bool", "tuple")},
    "_codecs.encode": _encoded,
    "pathlib.PosixPath": _path_of,
    "pathlib.WindowsPath": _path_of,
    "numpy.dtype": lambda kind, *_: _ElementType(kind),
    "numpy.ndarray": "numpy.ndarray",
    "numpy.core.multiarray._reconstruct": lambda *_: Array(),
    "numpy._core.multiarray._reconstruct": lambda *_: Array(),
    "numpy.core.multiarray.scalar": lambda kind, raw: Array(kind, (), raw),
    "numpy._core.multiarray.scalar": lambda kind, raw: Array(kind, (), raw),
}
