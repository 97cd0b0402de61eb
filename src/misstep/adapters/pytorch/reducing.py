"""DistributedDataParallel on trial: other buckets for its all-reduces, or the times at which its gradients are ready.

Both are told: what DDP made of a list of buckets is read back from it, for it closes them in its own order.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

_STEPS = 20
_WARM = 5
_PROBES = (1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24)
_ROUNDS = 5
Tell = Callable[..., None]


def change_buckets(caps_mb: list[float] | None, tell: Tell, *, times: bool) -> None:
    """Have every network that is wrapped from now on use these buckets, or tell its gradients' times."""
    kind: Any = DistributedDataParallel
    original = kind.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if caps_mb is not None:
            kwargs = {name: value for name, value in kwargs.items() if name != "bucket_cap_mb"}
            kwargs["bucket_cap_mb_list"] = caps_mb
        original(self, *args, **kwargs)
        if times:
            GradientTimes(self, tell)
        else:
            _read_back(self, tell)

    kind.__init__ = __init__


def _read_back(network: Any, tell: Tell) -> None:
    """After a few steps, in which DDP orders its buckets anew."""
    left = [_WARM]

    def later(module: Any, given: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            handle.remove()
            told = network._get_ddp_logging_data()
            tell(knob="bucket_cap_mb_list", value=str(told.get("rebuilt_bucket_sizes") or told.get("bucket_sizes")))

    handle = network.register_forward_pre_hook(later)


class GradientTimes:
    """When each gradient of a step is ready, by backward's own clock, and what all-reduces of some sizes take."""

    def __init__(self, network: Any, tell: Tell) -> None:
        self._network, self._tell = network, tell
        self._parameters = [one for one in network.module.parameters() if one.requires_grad]
        self._ready: list[list[float]] = [[] for _ in self._parameters]
        self._began = 0.0
        self._steps = 0
        self._wire = _probe(self._parameters[0]) if self._parameters else []
        self._handles = [
            parameter.register_post_accumulate_grad_hook(self._note(place))
            for place, parameter in enumerate(self._parameters)
        ]
        self._handles.append(network.register_forward_hook(self._forward_done))

    def _note(self, place: int) -> Any:
        def ready(parameter: Any) -> None:
            self._ready[place].append((perf_counter() - self._began) * 1e3)

        return ready

    def _forward_done(self, module: Any, given: Any, result: Any) -> None:
        self._steps += 1
        if self._steps == _STEPS:
            for handle in self._handles:
                handle.remove()
            self._report()
        self._began = perf_counter()

    def _report(self) -> None:
        ready = [median(times[_WARM:]) if len(times) > _WARM else None for times in self._ready]
        sizes = [parameter.numel() * parameter.element_size() for parameter in self._parameters]
        self._tell(knob="gradient_times", value=True, ready=ready, sizes=sizes, wire=self._wire)


def _probe(like: Any) -> list[list[float]]:
    """[bytes, milliseconds] of all-reduces of some sizes, through the very channel the gradients take."""
    found = []
    for size in _PROBES:
        buffer = torch.zeros(size // 4, device=like.device)
        for number in range(_ROUNDS + 1):
            distributed.barrier()
            began = perf_counter()
            distributed.all_reduce(buffer)
            if number:
                found.append([float(size), (perf_counter() - began) * 1e3])
    return found
