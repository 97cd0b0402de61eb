"""Checkpoints of both frameworks behind three functions, and a look inside them that needs neither.

    save_checkpoint(net, "net.ckpt")
    for name, parameter in load_checkpoint("net.ckpt").items():
        print(name, parameter.asnumpy())
    load_checkpoint("net.ckpt", net=net)

A file appears under its name only when it is complete: it is written beside it first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from misstep.errors import FormatError, TrainError, need
from misstep.train.steps import Framework, framework_for, framework_named
from misstep.train.values import Array, framework_of, to_numpy


@dataclass(frozen=True, slots=True, eq=False)
class SavedParameter:
    """One value of a checkpoint, readable without a framework."""

    name: str
    value: Any

    @property
    def data(self) -> SavedParameter:
        """Itself, so that `parameter.data.asnumpy()` works whoever wrote the file."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    def asnumpy(self) -> Array:
        return to_numpy(self.value)

    def numpy(self) -> Array:
        return to_numpy(self.value)

    def __array__(self, dtype: Any = None) -> Array:
        array = self.asnumpy()
        return array if dtype is None else array.astype(dtype)


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: str | os.PathLike[str],
    *,
    append_dict: Mapping[str, Any] | None = None,
    async_save: bool = False,
) -> Thread | None:
    """Writes a network, or named tensors, to a file; the suffix chooses safetensors, otherwise the framework's own.

    With `async_save` the values are copied now and written by a thread, which is returned to be joined.
    """
    framework, tensors = _named_tensors(save_obj)
    if append_dict:
        tensors = {**tensors, **{name: framework.tensor(value) for name, value in append_dict.items()}}
    path = Path(ckpt_file_name)
    if path.suffix not in (".ckpt", ".pt", ".pth", ".bin", ".safetensors"):
        path = path.with_name(path.name + framework.suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not async_save:
        _write(framework, tensors, path)
        return None
    thread = Thread(target=_write, args=(framework, tensors, path), name=f"saving {path.name}")
    thread.start()
    return thread


def load_checkpoint(ckpt_file_name: str | os.PathLike[str], net: Any = None) -> dict[str, SavedParameter]:
    """The values of a checkpoint by name, and, if given, written into a network of either framework."""
    path = Path(ckpt_file_name)
    saved = {name: SavedParameter(name, value) for name, value in _read(path)}
    if net is not None:
        missing = framework_for(net, what="net").load_weights(net, {name: item.value for name, item in saved.items()})
        if len(missing) == len(framework_for(net).snapshot(net)):
            raise TrainError(
                f"{path.name} has none of the network's parameters; it has {_few(saved)}, "
                f"the network has {_few(missing)}: it belongs to another network"
            )
    return saved


def load_param_into_net(net: Any, parameter_dict: Mapping[str, Any], strict_load: bool = False) -> list[str]:
    """Writes named values into a network in place; returns the network's names that were not among them."""
    values = {
        name: getattr(item, "value", item) if isinstance(item, SavedParameter) else item
        for name, item in parameter_dict.items()
    }
    missing = framework_for(net, what="net").load_weights(net, values)
    if missing and strict_load:
        raise TrainError(f"{len(missing)} parameters of the network are not in the checkpoint: {_few(missing)}")
    return missing


def _named_tensors(save_obj: Any) -> tuple[Framework, dict[str, Any]]:
    if isinstance(save_obj, Mapping):
        tensors = {
            name: getattr(value, "value", value) if isinstance(value, SavedParameter) else value
            for name, value in save_obj.items()
        }
    elif isinstance(save_obj, list):
        tensors = {str(item["name"]): item["data"] for item in save_obj}
    else:
        framework = framework_for(save_obj, what="save_obj")
        return framework, framework.snapshot(save_obj)
    names = {name for name in map(framework_of, tensors.values()) if name is not None}
    if len(names) > 1:
        raise TrainError("save_checkpoint got tensors of both frameworks; convert them to one first")
    return framework_named(names.pop() if names else "torch"), tensors


def _write(framework: Framework, tensors: Mapping[str, Any], path: Path) -> None:
    partial = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        framework.write_file(tensors, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with path.open("rb") as file:
            magic = file.read(16)
    except FileNotFoundError:
        beside = [other.name for other in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
        listed = f"; in that directory: {_few(sorted(beside))}" if beside else ""
        raise FormatError(f"no checkpoint {path}{listed}", path=str(path)) from None
    if path.suffix == ".safetensors" or magic[8:10] == b'{"':
        yield from need("safetensors.numpy", "to read .safetensors", extra="dev").load_file(path).items()
        return
    framework = framework_named("torch" if magic.startswith(b"PK") else "mindspore")
    try:
        contents = framework.read_file(path)
    except (ValueError, RuntimeError, OSError) as broken:
        reason = str(broken).splitlines()[0]
        raise FormatError(f"{path.name} cannot be read as a checkpoint: {reason}", path=str(path)) from broken
    yield from _tensors_in(contents)


def _tensors_in(contents: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in contents.items():
        if hasattr(value, "shape"):
            yield name, value
        elif isinstance(value, Mapping):  # {"state_dict": …} and the like
            yield from _tensors_in(value)


def _few(names: Any) -> str:
    every = [str(name) for name in names]
    return ", ".join(every[:4]) + (f" and {len(every) - 4} more" if len(every) > 4 else "")
