"""A checkpoint as read: named tensors, fetched one by one, and whatever else the file held.

Every format becomes the same object, which is also a `TensorSource`, so a checkpoint compares with a dump or with the
checkpoint of another framework by the same code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from misstep.core.address import Address, Role
from misstep.errors import TensorUnavailable, nearest
from misstep.store.foreign.source import Entry, address_in

Section = Literal["weights", "optimizer"]

_OPTIMIZER_HEAD = re.compile(
    r"(?:^|\.)(?:optimizer|optimizer_state|optimizer_state_dict|optim|optimizers|opt)(?:\.|$)"
    r"|^(?:moments|moment1|moment2|accum|stat|ms|mom|adam_m|adam_v|velocity)\."
)
_OPTIMIZER_LEAF = re.compile(
    r"(?:^|\.)(?:exp_avg|exp_avg_sq|max_exp_avg_sq|momentum_buffer|square_avg|grad_avg|sum|step"
    r"|global_step|learning_rate|momentum|beta1_power|beta2_power|weight_decay)$"
)
_BUFFER_LEAVES = frozenset({"running_mean", "running_var", "moving_mean", "moving_variance", "num_batches_tracked"})


@dataclass(frozen=True, slots=True)
class Held:
    """One tensor in a checkpoint: what it looks like, and how to fetch it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    load: Callable[[], NDArray[Any]] = field(compare=False, repr=False)
    trainable: bool | None = None
    """None when the format does not say."""
    quantized: tuple[float, int] | None = None
    """Scale and zero point of a quantised tensor; the array holds the stored integers."""
    place: Hashable = None
    """The same for tensors that share their memory in the file: tied weights are one parameter."""

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) if self.shape else 1

    @property
    def section(self) -> Section:
        return section_of(self.name)


def unreadable(name: str, dtype: str, shape: tuple[int, ...], why: str) -> Held:
    """A tensor whose values nobody here can read; the rest of its file is none the worse."""

    def load() -> NDArray[Any]:
        raise TensorUnavailable(f"{name} cannot be read: {why}", address=name)

    return Held(name, dtype, shape, load)


@dataclass(slots=True)
class Checkpoint:
    """The tensors of a checkpoint file in the order they were saved.

    >>> checkpoint = read_checkpoint("model.ckpt")
    >>> checkpoint["fc1.weight"].shape
    (16, 8)
    """

    path: Path
    format: str
    tensors: dict[str, Held]
    extras: dict[str, object] = field(default_factory=dict)
    """Numbers and words beside the tensors: the epoch, the learning rate, the metadata of the file."""
    checksum: Literal["right", "absent"] = "absent"

    @property
    def label(self) -> str:
        return str(self.path)

    def __getitem__(self, name: str) -> NDArray[Any]:
        held = self.tensors.get(name)
        if held is None:
            raise TensorUnavailable(f"{self.path.name} holds no {name}{nearest(name, self.tensors)}", address=name)
        return held.load()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def entries(self) -> list[Entry]:
        found = []
        for order, held in enumerate(self.tensors.values()):
            # An export of a run names its tensors by address; a checkpoint by parameter.
            address = address_in(held.name) or Address(held.name, role_of(held.name))
            found.append(
                Entry(
                    name=address.node,
                    role=address.role,
                    slot=address.slot,
                    shape=held.shape,
                    dtype=held.dtype,
                    order=order,
                    step=address.step,
                    rank=address.rank,
                    call=address.call,
                    key=held.name,
                )
            )
        return found

    def array(self, entry: Entry) -> NDArray[Any]:
        return self[entry.key]


def section_of(name: str) -> Section:
    """Which part of a checkpoint a tensor belongs to, told by its name."""
    if _OPTIMIZER_HEAD.search(name) or _OPTIMIZER_LEAF.search(name):
        return "optimizer"
    return "weights"


def role_of(name: str) -> Role:
    leaf = name.rsplit(".", 1)[-1]
    return "buffer" if leaf in _BUFFER_LEAVES or section_of(name) == "optimizer" else "param"
