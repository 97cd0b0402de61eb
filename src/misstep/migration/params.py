"""What a network, a checkpoint or a run holds in parameters: the first stage of a migration.

>>> read_inventory("model.py:build").trainable
11_689_512
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from misstep.migration.frameworks.base import Framework, Param
from misstep.migration.sources import Built, build, names_a_source, read_batch
from misstep.store.checkpoint import Checkpoint, looks_like_checkpoint, read_checkpoint, section_of
from misstep.store.checkpoint.record import role_of
from misstep.store.foreign.sniff import source_of
from misstep.store.foreign.source import TensorSource

_MINDSPORE_WORDS = frozenset({"gamma", "beta", "moving_mean", "moving_variance", "embedding_table"})
_TORCH_WORDS = frozenset({"running_mean", "running_var", "num_batches_tracked"})


@dataclass(frozen=True, slots=True)
class Inventory:
    """Every parameter of one side, in its own order."""

    label: str
    framework: Framework | None
    params: tuple[Param, ...]

    @property
    def weights(self) -> tuple[Param, ...]:
        """Without the optimizer's state."""
        return tuple(one for one in self.params if one.kind != "optimizer")

    @property
    def count(self) -> int:
        return sum(one.count for one in self.weights)

    @property
    def trainable(self) -> int | None:
        """Numbers that training moves; None when a file does not say."""
        known = [one for one in self.weights if one.trainable is not None]
        return sum(one.count for one in known if one.trainable) if known else None

    @property
    def frozen(self) -> tuple[Param, ...]:
        return tuple(one for one in self.weights if one.kind == "param" and one.trainable is False)

    @property
    def shared(self) -> tuple[Param, ...]:
        return tuple(one for one in self.weights if one.shared)


def read_inventory(thing: str, *, framework: Framework | None = None) -> Inventory:
    """The parameters of `model.py:build`, of a checkpoint of either framework, or of a run."""
    if names_a_source(thing):
        return inventory_of(build(thing, framework))
    if looks_like_checkpoint(thing) or Path(thing).is_file():
        return inventory_of_checkpoint(read_checkpoint(thing))
    return _of_source(source_of(thing))


def execution_order(thing: str, data: str) -> list[str]:
    """The layers of a network in the order they run on a batch; nothing for a file."""
    if not names_a_source(thing):
        return []
    built = build(thing)
    batch = read_batch(data, labelled=built.loss is not None)
    return [call.path for call in built.half.run(built.model, batch.inputs, train=False).calls]


def inventory_of(built: Built) -> Inventory:
    return Inventory(built.spec, built.half.name, tuple(built.half.parameters(built.model)))


def inventory_of_checkpoint(held: Checkpoint) -> Inventory:
    params = []
    for name, one in held.tensors.items():
        params.append(Param(name, one.shape, one.dtype, _kind(name), one.trainable, fetch=one.load))
    return Inventory(held.label, framework_of_names(held), tuple(params))


def _kind(name: str) -> Literal["param", "buffer", "optimizer"]:
    if section_of(name) == "optimizer":
        return "optimizer"
    return "buffer" if role_of(name) == "buffer" else "param"


def framework_of_names(held: Checkpoint) -> Framework | None:
    """Which framework's words a checkpoint uses; None when it uses neither's own."""
    if held.format == "mindspore":
        return "mindspore"
    if held.format == "torch":
        return "torch"
    words = {name.rpartition(".")[2] for name in held.tensors}
    said = str(held.extras.get("format", ""))
    if words & _MINDSPORE_WORDS or said == "ms":
        return "mindspore"
    return "torch" if words & _TORCH_WORDS or said == "pt" else None


def _of_source(source: TensorSource) -> Inventory:
    """A run's parameters as it last wrote them."""
    last: dict[str, Param] = {}
    for entry in source.entries():
        if entry.role in ("param", "buffer"):
            last[entry.name] = Param(
                entry.name,
                entry.shape,
                entry.dtype,
                "buffer" if entry.role == "buffer" else "param",
                None,
                fetch=partial(source.array, entry),
            )
    return Inventory(source.label, None, tuple(last.values()))
