"""Changes tried in one process without touching the user's files: other arguments for a data loader, an optimizer or
the network's forward. `misstep advise --apply` measures with them and without; nothing of this is installed otherwise.

What was really carried out is told to `tell`: a change that found nothing to change must not be measured as one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.data import DataLoader

from misstep.adapters.source import user_source

Tell = Callable[..., None]

_POSITIONAL = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
)
_OF_WORKERS = ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context", "worker_init_fn")
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
_LIBRARIES = (torch.__path__[0],)


def carry_out(told: dict[str, Any], tell: Tell) -> None:
    """Have the program meet these changes: {"loaders": [{"at", "arguments"}], "knobs": {name: value}}."""
    if told["loaders"]:
        _change_loaders(told["loaders"], tell)
    knobs = told["knobs"]
    for name in ("fused", "foreach"):
        if name in knobs:
            _change_optimizers(name, bool(knobs[name]), tell)
    if "bucket_cap_mb_list" in knobs or "gradient_times" in knobs:
        from misstep.adapters.pytorch.reducing import change_buckets

        change_buckets(knobs.get("bucket_cap_mb_list"), tell, times=bool(knobs.get("gradient_times")))
    wrappers = [partial(_WRAPPERS[name], value=value) for name, value in knobs.items() if name in _WRAPPERS]
    if wrappers:
        _change_network(wrappers, knobs, tell)


# ── data loaders ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _change_loaders(wanted: list[dict[str, Any]], tell: Tell) -> None:
    loader: Any = DataLoader
    original = loader.__init__
    made: Counter[tuple[str, int]] = Counter()

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        line = user_source(sys._getframe(1), *_LIBRARIES)
        place = (line.file, line.line) if line is not None else ("", 0)
        nth, made[place] = made[place], made[place] + 1
        given = dict(zip(_POSITIONAL, args)) | kwargs if len(args) <= len(_POSITIONAL) else None
        for one in wanted:
            at = one["at"] or {}
            if given is not None and (at.get("file"), at.get("line"), at.get("nth", 0)) == (*place, nth):
                given |= one["arguments"]
                if not given.get("num_workers"):
                    given = {name: value for name, value in given.items() if name not in _OF_WORKERS}
                args, kwargs = (), given
                tell(loader=one["arguments"], at=f"{place[0]}:{place[1]}")
        original(self, *args, **kwargs)

    loader.__init__ = __init__


# ── optimizers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _change_optimizers(name: str, value: bool, tell: Tell) -> None:
    for kind in (getattr(torch.optim, one) for one in _FUSED):
        kind.__init__ = _told(kind.__init__, name, value, tell)


def _told(original: Any, name: str, value: bool, tell: Tell) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        others = {key: given for key, given in kwargs.items() if key not in ("fused", "foreach")}
        original(self, *args, **others, **{name: value})
        tell(knob=name, value=value, optimizer=type(self).__name__)

    return __init__


# ── the network ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _change_network(wrappers: list[Any], knobs: dict[str, Any], tell: Tell) -> None:
    """At the first call of the first network: its forward, inside of what is tried."""

    def first(module: Any, given: Any) -> None:
        handle.remove()
        forward = module.forward
        for wrap in wrappers:
            forward = wrap(module, forward)
        module.forward = forward
        tell(knob=", ".join(knobs), value=str(knobs), network=type(module).__name__)

    handle = register_module_forward_pre_hook(first)


def _autocast(module: Any, forward: Any, *, value: str) -> Any:
    dtype = getattr(torch, value)

    def inside(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast("cpu", dtype=dtype):
            return _in_float32(forward(*args, **kwargs))

    return inside


def _in_float32(result: Any) -> Any:
    """Losses written for float32 get it, as from a loop that leaves autocast before its loss."""
    if isinstance(result, torch.Tensor):
        return result.float() if result.dtype in (torch.bfloat16, torch.float16) else result
    if type(result) in (list, tuple):
        return type(result)(_in_float32(one) for one in result)
    return result


def _channels_last(module: Any, forward: Any, *, value: Any) -> Any:
    module.to(memory_format=torch.channels_last)

    def laid_out(one: Any) -> Any:
        if isinstance(one, torch.Tensor) and one.dim() == 4:
            return one.contiguous(memory_format=torch.channels_last)
        return one

    def inside(*args: Any, **kwargs: Any) -> Any:
        return forward(*map(laid_out, args), **{name: laid_out(one) for name, one in kwargs.items()})

    return inside


def _compiled(module: Any, forward: Any, *, value: Any) -> Any:
    return torch.compile(forward)


_WRAPPERS: dict[str, Any] = {"autocast": _autocast, "channels_last": _channels_last, "compile": _compiled}
