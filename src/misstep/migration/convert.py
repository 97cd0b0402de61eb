"""One checkpoint into the other framework's: planned, shown, written whole or not at all, and read back.

Which word a layer uses for its weight depends on the layer, and a file does not say what its layers are. With the
network at hand (`like`) names are paired with its own; without, the other parameters of a layer tell what it is, and
what they leave open is listed as uncertain.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import numpy as np

from misstep.compare.mapfile import NameMap
from misstep.errors import FormatError, MigrationError
from misstep.migration.frameworks.base import Array, Framework, Param, half_of
from misstep.migration.layouts import layout_between, turned
from misstep.migration.pairing import pair
from misstep.migration.params import Inventory, execution_order, inventory_of, inventory_of_checkpoint
from misstep.migration.sources import build
from misstep.migration.words import NO_COUNTERPART, mindspore_leaf, torch_leaf
from misstep.store.checkpoint import (
    Checkpoint,
    Held,
    read_checkpoint,
    write_mindspore_ckpt,
    write_npz,
    write_safetensors,
)
from misstep.store.foreign.elements import dtype_named, is_float

Why = Literal["paired", "rule", "same", "rename"]
_EMBEDDING = re.compile(r"emb|wte|wpe|token|vocab|words|lookup", re.IGNORECASE)
_PRELU = re.compile(r"prelu|slope|act", re.IGNORECASE)
_NORM = re.compile(r"norm|\bln|\bbn", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Move:
    """One tensor's way from the source file to the target."""

    source: str
    target: str
    shape: tuple[int, ...]
    dtype: str
    layout: str = ""
    why: Why = "same"
    uncertain: bool = False
    """The file alone does not tell what kind of layer it belongs to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be written, and what will not."""

    source: str
    target: str
    framework: Framework
    moves: tuple[Move, ...]
    dropped: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """Parameters of the network that nothing in the file fits."""

    @property
    def uncertain(self) -> tuple[Move, ...]:
        return tuple(one for one in self.moves if one.uncertain)


def plan(
    source: str,
    target: str,
    *,
    to: Framework | None = None,
    like: str | None = None,
    of: str | None = None,
    data: str | None = None,
    names: NameMap | None = None,
    drop: Sequence[str] = (),
    rename: Sequence[str] = (),
    dtype: str = "",
) -> Plan:
    """How every tensor of a checkpoint would be named, turned and stored.

    `like` is the network that will load it; with `of`, the network it came from, and a batch, the order of execution
    pairs what names do not.

    >>> plan("resnet.pth", "resnet.ckpt").uncertain
    """
    held = read_any(source)
    inventory = inventory_of_checkpoint(held)
    built = build(like) if like is not None else None
    framework = built.half.name if built is not None else to or _framework_of(target, inventory)
    if dtype and (dtype_named(dtype) is None or not is_float(dtype)):
        raise MigrationError(f"{dtype!r} is no floating-point type; use float32, float16, bfloat16 or float64")
    ours = [one for one in inventory.params if not _dropped(one, drop)]
    dropped = tuple(one.name for one in inventory.params if _dropped(one, drop))
    missing: tuple[str, ...] = ()
    if built is None:
        moves = _by_rules(ours, inventory.framework, framework, names or NameMap())
    else:
        order = None
        if of is not None and data is not None and like is not None:
            order = execution_order(of, data), execution_order(like, data)
        layers = {one.name: one.layer for one in inventory_of(build(of)).params} if of is not None else {}
        known = tuple(replace(one, layer=layers.get(one.name, "")) for one in ours)
        found = pair(Inventory(source, inventory.framework, known), inventory_of(built), names=names, order=order)
        wrong = [one for one in found.matches if not one.fits]
        if wrong:
            raise MigrationError(
                f"{wrong[0].left.name} has shape {wrong[0].left.shape} in {source} and {wrong[0].right.shape} in "
                f"{like}; the network is another one, or add --drop {wrong[0].left.name!r}"
            )
        moves = [
            Move(one.left.name, one.right.name, one.right.shape, one.left.dtype, one.layout, "paired")
            for one in found.matches
        ]
        dropped += tuple(one.param.name for one in found.only_left)
        missing = tuple(one.param.name for one in found.only_right if not one.expected)
    final = tuple(_stored(_renamed(one, rename), dtype) for one in moves)
    _no_name_twice(final)
    return Plan(source, target, framework, final, dropped, missing)


def convert(planned: Plan) -> None:
    """Write what was planned; the file appears only when it is whole, and is read back and compared."""
    held = read_any(planned.source)
    arrays: dict[str, Array] = {}
    for move in planned.moves:
        value = turned(held[move.source], move.layout, move.shape)
        wanted = dtype_named(move.dtype)
        arrays[move.target] = value if wanted is None or value.dtype == wanted else value.astype(wanted)
    target = Path(planned.target)
    partial_file = target.with_name(f".{target.name}.partial")
    partial_file.parent.mkdir(parents=True, exist_ok=True)
    try:
        _write(partial_file, target.suffix, arrays, planned.framework)
        _verify(partial_file, arrays)
        os.replace(partial_file, target)
    finally:
        partial_file.unlink(missing_ok=True)


def read_any(path: str) -> Checkpoint:
    """A checkpoint file, or the index of one that was cut into shards."""
    where = Path(path)
    if where.suffix != ".json":
        return read_checkpoint(where)
    try:
        files: Mapping[str, str] = json.loads(where.read_text(encoding="utf-8"))["weight_map"]
    except FileNotFoundError:
        raise FormatError(f"no such file: {where}", path=path) from None
    except (ValueError, KeyError, TypeError):
        raise FormatError(f"{where} is no index of shards: it has no weight_map", path=path) from None
    shards = {name: read_checkpoint(where.parent / name) for name in dict.fromkeys(files.values())}
    tensors: dict[str, Held] = {}
    for name, file in files.items():
        if name not in shards[file].tensors:
            raise FormatError(f"{where} files {name} under {file}, which does not hold it", path=path)
        tensors[name] = shards[file].tensors[name]
    first = next(iter(shards.values()), None)
    return Checkpoint(where, first.format if first is not None else "safetensors", tensors)


def _by_rules(params: Sequence[Param], source: Framework | None, target: Framework, names: NameMap) -> list[Move]:
    layers: dict[str, dict[str, Param]] = defaultdict(dict)
    for one in params:
        owner, _, leaf = one.name.rpartition(".")
        layers[owner][torch_leaf(leaf) if source != "torch" else leaf] = one
    moves = []
    for owner, leaves in layers.items():
        kind, sure = ("", True) if source == target else _kind(owner, leaves)
        for leaf, one in leaves.items():
            mapped = names.right_name(one.name)
            if source == target:
                word, shape = one.name.rpartition(".")[2], one.shape
            elif target == "mindspore":
                word, shape = mindspore_leaf(leaf, kind, one.shape), _mindspore_shape(leaf, one.shape)
            else:
                word, shape = leaf, _torch_shape(leaf, one.shape)
            path = _path(owner, target, layers) if source != target else owner
            name = mapped or (f"{path}.{word}" if path else word)
            layout = names.layout(one.name) or layout_between(one.shape, shape, leaf) or ""
            unclear = mapped is None and not (sure or leaf != "weight")
            unclear = unclear or (source != target and target == "torch" and shape != one.shape)
            moves.append(
                Move(one.name, name, shape, one.dtype, layout, "rule" if name != one.name else "same", unclear)
            )
    return moves


def _kind(owner: str, leaves: Mapping[str, Param]) -> tuple[str, bool]:
    """What kind of layer these parameters belong to, and whether they prove it."""
    weight = leaves.get("weight")
    if "running_mean" in leaves:
        return "BatchNorm2d", True
    if weight is None or len(weight.shape) > 2:
        return "", True
    last = owner.rpartition(".")[2]
    if len(weight.shape) == 1:
        if "bias" in leaves:
            return "LayerNorm", True
        if _PRELU.search(last):
            return "PReLU", True
        return ("LayerNorm", bool(_NORM.search(last))) if weight.shape[0] != 1 else ("PReLU", True)
    if "bias" not in leaves and _EMBEDDING.search(last):
        return "Embedding", True
    return "", "bias" in leaves or bool(re.search(r"linear|fc|dense|proj|head|out|classifier|[qkvo]$", last, re.I))


def _path(owner: str, target: Framework, layers: Mapping[str, object]) -> str:
    """Transformer layers call their feed-forward parts differently."""
    parent, dot, last = owner.rpartition(".")
    words = {"linear1": "dense1", "linear2": "dense2"}
    if target == "torch":
        words = {ours: theirs for theirs, ours in words.items()}
    known = any(path.startswith(f"{parent}.self_attn" if parent else "self_attn") for path in layers)
    return f"{parent}{dot}{words[last]}" if last in words and known else owner


def _mindspore_shape(leaf: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:2], 1, shape[2]) if leaf == "weight" and len(shape) == 3 else shape


def _torch_shape(leaf: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """(O, I, 1, K) with K over one is a Conv1d, or a Conv2d with a flat kernel: only the network can tell."""
    flat = leaf == "weight" and len(shape) == 4 and shape[2] == 1 and shape[3] > 1
    return (*shape[:2], shape[3]) if flat else shape


def _framework_of(target: str, source: Inventory) -> Framework:
    suffix = Path(target).suffix
    if suffix == ".ckpt":
        return "mindspore"
    if suffix in (".pt", ".pth", ".bin"):
        return "torch"
    if suffix in (".safetensors", ".npz"):
        return "torch" if source.framework == "mindspore" else "mindspore"
    raise MigrationError(f"{target}: the suffix names no checkpoint format; use .ckpt, .pth, .safetensors or .npz")


def _dropped(one: Param, patterns: Sequence[str]) -> bool:
    if one.kind == "optimizer" or one.name.rpartition(".")[2] in NO_COUNTERPART:
        return True
    return any(fnmatchcase(one.name, pattern) for pattern in patterns)


def _renamed(move: Move, rules: Sequence[str]) -> Move:
    for rule in rules:
        old, equals, new = rule.partition("=")
        if not equals:
            raise MigrationError(f"--rename {rule!r} has no '='; write --rename 'backbone.*=*'")
        name = NameMap(names={old: new}).right_name(move.target)
        if name is not None:
            return Move(move.source, name, move.shape, move.dtype, move.layout, "rename", move.uncertain)
    return move


def _stored(move: Move, dtype: str) -> Move:
    if not dtype or not is_float(move.dtype):
        return move
    return Move(move.source, move.target, move.shape, dtype, move.layout, move.why, move.uncertain)


def _no_name_twice(moves: Sequence[Move]) -> None:
    seen: dict[str, str] = {}
    for move in moves:
        if move.target in seen:
            raise MigrationError(
                f"{seen[move.target]} and {move.source} would both become {move.target}; change --rename or the map"
            )
        seen[move.target] = move.source


def _write(path: Path, suffix: str, arrays: Mapping[str, Array], framework: Framework) -> None:
    if suffix == ".safetensors":
        write_safetensors(path, arrays, metadata={"format": "ms" if framework == "mindspore" else "pt"})
    elif suffix == ".npz":
        write_npz(path, arrays)
    elif suffix == ".ckpt":
        write_mindspore_ckpt(path, arrays)
    else:
        half_of("torch").save(str(path), arrays)


def _verify(path: Path, arrays: Mapping[str, Array]) -> None:
    back = read_checkpoint(path)
    for name, value in arrays.items():
        if name not in back.tensors or back[name].tobytes() != np.ascontiguousarray(value).tobytes():
            raise MigrationError(f"{name} did not come back as written; nothing was put in its place")
