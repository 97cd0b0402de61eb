"""The samples of a step: which tensors hold one entry per sample, what they are called in the dataset, and the step
again with only some of them."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.data import Subset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from misstep.adapters.pytorch.replay.entries import Entry, Held, held_in
from misstep.adapters.replaying.protocol import Batch

if TYPE_CHECKING:
    from misstep.adapters.pytorch.replay.rerun import Player

_FILE_LISTS = ("samples", "imgs", "image_files", "files", "filenames", "file_names", "paths", "image_paths")
"""Where datasets keep the names of their files, most common first (torchvision's ImageFolder: `samples`)."""

_LOADER: Any = _BaseDataLoaderIter


class LoaderWatch:
    """Remembers which samples the sampler chose for the batch a data loader handed out last."""

    def __init__(self) -> None:
        self.last: tuple[tuple[int, ...], weakref.ref[Any] | None] = ((), None)
        self._chosen: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()
        self._originals: tuple[Any, Any] | None = None

    def install(self) -> None:
        index, following = _LOADER._next_index, _LOADER.__next__
        self._originals = (index, following)
        watch = self

        def _next_index(loader: Any) -> Any:
            chosen = index(loader)
            # Workers are sent their tasks ahead of time: the number of the task tells which batch it will be.
            watch._chosen.setdefault(loader, {})[getattr(loader, "_send_idx", 0)] = chosen
            return chosen

        def __next__(loader: Any) -> Any:
            data = following(loader)
            chosen = watch._chosen.get(loader, {}).pop(getattr(loader, "_rcvd_idx", 1) - 1, None)
            known = isinstance(chosen, list | tuple) and all(isinstance(one, int) for one in chosen)
            dataset = getattr(loader, "_dataset", None)
            watch.last = (tuple(chosen) if known and chosen else (), None if dataset is None else _weak(dataset))
            return data

        _LOADER._next_index, _LOADER.__next__ = _next_index, __next__

    def remove(self) -> None:
        if self._originals is not None:
            _LOADER._next_index, _LOADER.__next__ = self._originals
            self._originals = None


class SampleSearch:
    """Runs a step again on parts of its batch."""

    def __init__(self, player: Player, guilty_backward: int) -> None:
        self.player = player
        self.backward = guilty_backward
        entries = _segment(player.entries, guilty_backward)
        self.size, self._along = _batch_dimension(entries)
        told = [entry.origin for entry in entries if entry.origin[0]]
        self.origin = told[0] if told else ((), None)

    def batch(self) -> Batch | None:
        if self.size < 2:
            return None
        held = [(f"input.{slot}", held.tensor) for slot, (held, _) in enumerate(self._along.values())]
        indices = self.origin[0] if len(self.origin[0]) == self.size else ()
        dataset = self.origin[1]() if self.origin[1] is not None else None
        return Batch(self.size, tuple(held), indices, _file_names(dataset, indices))

    def bad_with(self, samples: Sequence[int], healthy: Sequence[int]) -> bool:
        fill = [one for one in healthy if one not in samples] or list(samples)
        kept = set(samples)
        order = torch.tensor([one if one in kept else fill[one % len(fill)] for one in range(self.size)])
        chosen = {
            key: held.tensor.detach().index_select(along, order.to(held.tensor.device))
            for key, (held, along) in self._along.items()
        }

        def swap(held: Held) -> torch.Tensor:
            part = chosen.get(id(held))
            if part is None:
                return held.tensor
            return part.requires_grad_() if held.tensor.requires_grad else part

        outcome, _ = self.player.run(watch=False, swap=swap)
        return not outcome.by_backward[self.backward]

    def sample(self, tensor: torch.Tensor, index: int) -> torch.Tensor:
        along = next(along for held, along in self._along.values() if held.tensor is tensor)
        return tensor.detach().select(along, index)


def _segment(entries: list[Entry], backward: int) -> list[Entry]:
    """What led to one of several backwards: with gradient accumulation each has a batch of its own."""
    ends = [place for place, entry in enumerate(entries) if entry.kind in ("backward", "loss")]
    first = ends[backward - 1] + 1 if backward > 0 else 0
    return entries[first : ends[backward] + 1]


def _batch_dimension(entries: list[Entry]) -> tuple[int, dict[int, tuple[Held, int]]]:
    """(how many samples, by id: a tensor that holds one entry for each, and along which dimension)."""
    found = [
        held
        for entry in entries
        for held in held_in((entry.args, entry.kwargs))
        if held.tensor.dim() and not isinstance(held.tensor, nn.Parameter) and not held.foreign
    ]
    if not found:
        return 0, {}
    first = found[0].tensor
    sizes = Counter(held.tensor.shape[0] for held in {id(held): held for held in found}.values())
    size = int(first.shape[0])
    if sizes[size] == 1 and first.dim() > 1 and sizes[int(first.shape[1])] > 0:
        size = int(first.shape[1])  # time first: the targets say how many samples there are
    along: dict[int, tuple[Held, int]] = {}
    for held in found:
        shape = held.tensor.shape
        if shape[0] == size:
            along[id(held)] = (held, 0)
        elif len(shape) > 1 and shape[1] == size:
            along[id(held)] = (held, 1)
    return size, along


def _file_names(dataset: Any, indices: Sequence[int]) -> tuple[str, ...]:
    while isinstance(dataset, Subset):
        indices = [dataset.indices[one] for one in indices]
        dataset = dataset.dataset
    for name in _FILE_LISTS:
        files = getattr(dataset, name, None)
        if isinstance(files, list | tuple) and indices and max(indices) < len(files):
            chosen = [files[one][0] if isinstance(files[one], tuple | list) else files[one] for one in indices]
            if all(hasattr(one, "__fspath__") or isinstance(one, str) for one in chosen):
                return tuple(str(one) for one in chosen)
    return ()


def _weak(thing: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(thing)
    except TypeError:
        return None
