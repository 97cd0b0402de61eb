"""What a path or an object holds: `source_of` finds the reader that knows it.

A reader is a question ("is this yours?") and a way to open; the first that says yes is taken. Our own run directory is
one among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError, RunNotFound
from misstep.store.bundle.open import bundle_run
from misstep.store.bundle.write import is_bundle
from misstep.store.checkpoint import looks_like_checkpoint, read_checkpoint
from misstep.store.checkpoint.sharded import looks_sharded
from misstep.store.foreign.elements import dtype_named, needs_ml_dtypes
from misstep.store.foreign.folder import looks_like_folder, open_folder
from misstep.store.foreign.mindspore.dump import looks_like_mindspore_dump, open_mindspore_dump
from misstep.store.foreign.msprobe import looks_like_msprobe, open_msprobe
from misstep.store.foreign.own_run import looks_like_run, open_own_run
from misstep.store.foreign.source import ArraySource, TensorSource, select
from misstep.store.reading.reader import Run
from misstep.store.runs import resolve


@dataclass(frozen=True, slots=True)
class Reader:
    """One kind of thing that can be opened."""

    name: str
    knows: Callable[[Path], bool]
    open: Callable[[Path], TensorSource]


def _is_checkpoint(path: Path) -> bool:
    return looks_sharded(path) or (path.is_file() and looks_like_checkpoint(path))


_READERS: list[Reader] = [
    Reader("run of misstep", looks_like_run, open_own_run),
    Reader("flight record", is_bundle, lambda path: open_own_run(bundle_run(path))),
    Reader("MindSpore dump", looks_like_mindspore_dump, open_mindspore_dump),
    Reader("msprobe dump", looks_like_msprobe, open_msprobe),
    Reader(
        "checkpoint",
        _is_checkpoint,
        read_checkpoint,
    ),
    Reader("folder of arrays", looks_like_folder, open_folder),
]

_MOMENT = re.compile(r"(?P<path>.+?)(?:@(?P<step>\d+))?(?:#(?P<rank>\d+))?")


def register(reader: Reader, *, first: bool = True) -> None:
    """Teach `source_of` another kind of thing."""
    _READERS[:] = [known for known in _READERS if known.name != reader.name]
    _READERS.insert(0 if first else len(_READERS), reader)


def kind_of(path: str | Path) -> str:
    """What a path holds, in a few words; empty when no reader knows it."""
    return next((reader.name for reader in _READERS if reader.knows(Path(path))), "")


def source_of(thing: object, *, label: str = "arrays", statistics: bool = False) -> TensorSource:
    """Anything that holds named tensors, as a source; with `statistics` also a run that kept nothing else.

    >>> source_of("last@120#0")              # a run by name or path, with a step and a rank if wanted
    >>> source_of("dumps/rank_0@3")          # the same for a folder of another tool
    >>> source_of({"fc:output": array})      # arrays in execution order
    >>> source_of(model.state_dict())        # tensors of a framework become arrays
    """
    if isinstance(thing, str | Path):
        return _opened(str(thing), statistics=statistics)
    if isinstance(thing, TensorSource):
        return thing
    if isinstance(thing, Run):
        return open_own_run(thing.path, statistics=statistics)
    if isinstance(thing, np.ndarray):
        return ArraySource({"array": thing}, label=label)
    if isinstance(thing, Mapping):
        return ArraySource({str(name): as_array(value) for name, value in thing.items()}, label=label)
    if hasattr(thing, "numpy") or hasattr(thing, "asnumpy"):
        return ArraySource({"tensor": as_array(thing)}, label=label)
    raise FormatError(
        f"cannot find tensors in a {type(thing).__name__}; give a run, a dump folder, a checkpoint file, "
        f"or a dictionary of arrays"
    )


def as_array(value: Any) -> NDArray[Any]:
    """A tensor of any framework as an array: asked of the object, no framework is imported."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "asnumpy"):
        return np.asarray(value.asnumpy())
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        name = str(value.dtype).removeprefix("torch.")
        if needs_ml_dtypes(name):
            # numpy cannot take these from the framework; float32 holds every value of them exactly.
            return np.asarray(value.float().numpy()).astype(dtype_named(name))
        return np.asarray(value.numpy())
    return np.asarray(value)


def _opened(text: str, *, statistics: bool) -> TensorSource:
    path, step, rank = Path(text), None, None
    if not path.exists():
        found = _MOMENT.fullmatch(text)
        assert found is not None
        path = Path(found["path"])
        step = int(found["step"]) if found["step"] else None
        rank = int(found["rank"]) if found["rank"] else None
    if not path.exists():
        try:
            path = resolve(path)
        except RunNotFound as unknown:
            raise FormatError(f"no such file or folder: {path}; {unknown}", path=text) from None
    for reader in _READERS:
        if reader.knows(path):
            own = statistics and looks_like_run(path)
            return select(open_own_run(path, statistics=True) if own else reader.open(path), step=step, rank=rank)
    kinds = ", ".join(reader.name for reader in _READERS)
    raise FormatError(f"{path} is nothing that can be read here ({kinds})", path=str(path))
