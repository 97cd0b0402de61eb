"""`model.py:build`: a function in a file that returns a network, or a network with its loss and optimizer.

def build():                          def build():
    return Net()                          net = Net()
                                          return net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), 0.1)
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from misstep.errors import FormatError, MigrationError, nearest
from misstep.migration.frameworks.base import Array, Framework, Half, framework_of, half_for, half_of

_LABELS = ("label", "labels", "target", "targets", "y")


@dataclass(frozen=True, slots=True)
class Built:
    """A network as its function returned it, with the side that can run it."""

    spec: str
    model: Any
    half: Half
    loss: Any = None
    optimizer: Any = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: what the network takes, and what the loss takes beside its output."""

    inputs: tuple[Array, ...]
    labels: tuple[Array, ...]
    names: tuple[str, ...]


def names_a_source(spec: str) -> bool:
    """`a.py:build` or `a.py`; anything else is a checkpoint or a run."""
    return spec.rpartition(":")[0].endswith(".py") or spec.endswith(".py")


def build(spec: str, framework: Framework | None = None) -> Built:
    """Call the function a spec names.

    >>> build("model.py:build", "torch").model
    """
    half = half_of(framework) if framework is not None else None
    with half.recording() if half is not None else contextlib.nullcontext():
        made = call_function(spec)
    return _built(spec, made, framework)


def call_function(spec: str) -> Any:
    """What the function a spec names returns, called without arguments."""
    path, _, name = spec.rpartition(":") if not spec.endswith(".py") else (spec, "", "build")
    where = Path(path)
    if not where.is_file():
        raise MigrationError(f"no such file: {path or spec}; a function in a file is named as model.py:build")
    function = getattr(load_file(where), name, None)
    if function is None:
        raise MigrationError(_no_function(where, name))
    try:
        return function()
    except TypeError as wrong:
        if not _wants_arguments(function):
            raise
        raise MigrationError(
            f"{where}:{name} wants arguments ({wrong}); write a function without any and name that"
        ) from None


def load_file(path: Path) -> ModuleType:
    """Import a file under a name of its own, with its folder first on the path."""
    where = path.resolve()
    unique = f"_misstep_source_{abs(hash(str(where)))}_{where.stem}"
    spec = importlib.util.spec_from_file_location(unique, where)
    if spec is None or spec.loader is None:
        raise MigrationError(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    sys.path.insert(0, str(where.parent))
    try:
        spec.loader.exec_module(module)
    except ImportError as wrong:
        raise MigrationError(f"{path} cannot be imported: {wrong}") from wrong
    except SyntaxError as wrong:
        raise MigrationError(f"{path}:{wrong.lineno} is not valid Python: {wrong.msg}") from wrong
    finally:
        sys.path.remove(str(where.parent))
    return module


def read_batch(path: str, *, labelled: bool) -> Batch:
    """A batch out of an .npz; arrays named label, target or y go to the loss, when there is one."""
    try:
        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
    except FileNotFoundError:
        raise MigrationError(
            f"no such file: {path}; write a batch with numpy.savez({path!r}, x=inputs, label=labels)"
        ) from None
    except (ValueError, OSError) as wrong:
        raise FormatError(f"{path} is no .npz of plain arrays: {wrong}", path=path) from None
    marked = {name for name in arrays if name.lower().rstrip("0123456789_") in _LABELS}
    if labelled and not marked and len(arrays) > 1:
        marked = {list(arrays)[-1]}
    labels = {name: array for name, array in arrays.items() if labelled and name in marked}
    inputs = {name: array for name, array in arrays.items() if name not in marked}
    if not inputs:
        raise MigrationError(f"{path} holds no input, only {', '.join(arrays) or 'nothing'}; add one named x")
    return Batch(tuple(inputs.values()), tuple(labels.values()), tuple(inputs))


def _built(spec: str, made: Any, framework: Framework | None) -> Built:
    if isinstance(made, Mapping):
        model, loss, optimizer = (made.get(key) for key in ("model", "loss", "optimizer"))
        model = made.get("network") if model is None else model
    elif isinstance(made, tuple):
        model, loss, optimizer = (*made, None, None)[:3]
    else:
        model, loss, optimizer = made, None, None
    half = half_for(model)
    if framework is not None and framework_of(model) != framework:
        other = "--mindspore" if framework == "torch" else "--torch"
        raise MigrationError(f"{spec} returned a network of {half.name}; pass it as {other} {spec}")
    return Built(spec, model, half, loss, optimizer)


def _no_function(where: Path, name: str) -> str:
    module = load_file(where)
    functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    return f"{where} has no function {name!r}{nearest(name, functions)}; it must return the network"


def _wants_arguments(function: Any) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    return False
