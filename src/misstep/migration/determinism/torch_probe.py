"""Inside a command that is examined: what goes in and comes out of everything, as digests, for the first steps.

Nothing is changed: hooks read, and the dispatch mode hands every operator on as it came.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import random
import sys
import zlib
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

STEPS = 2
"""Training steps whose operators are recorded."""
PASSES = 64
"""Passes whose inputs are recorded: an order shows over a whole epoch, not in one batch."""
_MOST_OPERATIONS = 20_000
_HOMES = (os.sep + "torch" + os.sep, os.sep + "misstep" + os.sep, "<frozen")


class Probe:
    def __init__(self, folder: Path) -> None:
        self.out = (folder / f"probe-{os.getpid()}.jsonl").open("w", encoding="utf-8")
        self.pid = os.getpid()
        self.before = _states()
        self.depth = self.passes = self.steps = self.operations = 0
        self.watch: _Watch | None = None
        self.backward = False

    def say(self, event: str, **facts: Any) -> None:
        if os.getpid() == self.pid:
            self.out.write(json.dumps({"event": event, **facts}) + "\n")

    def pre_forward(self, module: Any, inputs: Any) -> None:
        self.depth += 1
        if self.depth > 1 or not torch.is_grad_enabled() or os.getpid() != self.pid:
            return
        if not any(one.requires_grad for one in module.parameters()):
            return
        if not self.passes:
            self.begin(module)
        self.backward = False
        self.passes += 1
        if self.passes <= PASSES:
            tensors = [one for one in _tensors(inputs) if one.ndim]
            self.say("inputs", samples=[_digest(row) for one in tensors[:2] for row in one.detach()[:512]])

    def post_forward(self, module: Any, inputs: Any, outputs: Any) -> None:
        self.depth = max(0, self.depth - 1)

    def begin(self, module: Any) -> None:
        now = _states()
        states = {name: [self.before.get(name, ""), now[name]] for name in now}
        self.say("generators", states=states, seed=torch.initial_seed(), threads=torch.get_num_threads())
        self.say("weights", digests={name: _digest(one.detach()) for name, one in module.named_parameters()})
        self.watch = _Watch(self)
        self.watch.__enter__()  # type: ignore[no-untyped-call]

    def pre_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.passes and self.steps < STEPS:
            grads = [one.grad for group in optimizer.param_groups for one in group["params"]]
            self.say("gradients", digests={str(at): _digest(g) for at, g in enumerate(grads) if g is not None})

    def post_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self.passes:
            return
        self.steps += 1
        if self.steps >= STEPS:
            self.stop()

    def stop(self) -> None:
        if self.watch is not None:
            self.watch.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self.watch = None
        self.out.flush()

    def end(self) -> None:
        self.stop()
        if os.getpid() == self.pid:
            self.out.close()


class _Watch(TorchDispatchMode):
    """Every operator, forward and backward, in the order it ran."""

    def __init__(self, probe: Probe) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.probe = probe

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = _digests((args, kwargs))
        made = func(*args, **kwargs)
        probe = self.probe
        probe.operations += 1
        if probe.operations <= _MOST_OPERATIONS:
            inside = torch._C._current_graph_task_id() != -1
            probe.say(
                "op",
                name=str(func),
                given=given,
                made=_digests(made),
                where=_line(),
                settings=_settings((args, kwargs)),
                backward=inside,
            )
        return made


def attach(folder: Path) -> None:
    """Watch what this process trains."""
    from torch.nn.modules import module as modules
    from torch.optim import optimizer as optimizers
    from torch.utils.data import DataLoader, RandomSampler

    probe = Probe(folder)
    modules.register_module_forward_pre_hook(probe.pre_forward)
    modules.register_module_forward_hook(probe.post_forward, always_call=True)
    optimizers.register_optimizer_step_pre_hook(probe.pre_step)
    optimizers.register_optimizer_step_post_hook(probe.post_step)
    original = DataLoader.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        probe.say("loader", workers=self.num_workers, shuffle=isinstance(self.sampler, RandomSampler))

    DataLoader.__init__ = init
    atexit.register(probe.end)


def _states() -> dict[str, str]:
    found = {"python": _short(pickle.dumps(random.getstate())), "torch": _digest(torch.get_rng_state())}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy"] = _short(pickle.dumps(numpy.random.get_state()))
    return found


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [one for each in value.values() for one in _tensors(each)]
    if isinstance(value, list | tuple):
        return [one for each in value for one in _tensors(each)]
    return []


def _digests(value: Any) -> str:
    return " ".join(_digest(one) for one in _tensors(value))


def _digest(tensor: torch.Tensor) -> str:
    with torch._C._DisableTorchDispatch():
        held = tensor.detach().cpu().contiguous()
        if held.dtype in (torch.bfloat16, torch.complex32):
            held = held.float() if held.dtype == torch.bfloat16 else held
        try:
            data = held.reshape(-1).view(torch.uint8).numpy().tobytes()
        except (RuntimeError, TypeError):
            return f"{tuple(held.shape)}"
    return f"{zlib.crc32(data):08x}"


def _settings(value: Any) -> str:
    """Arguments that are numbers or words."""
    found: list[str] = []

    def walk(one: Any) -> None:
        if isinstance(one, bool | int | float | str):
            found.append(repr(one))
        elif isinstance(one, dict):
            for each in one.values():
                walk(each)
        elif isinstance(one, list | tuple):
            for each in one:
                walk(each)

    walk(value)
    return " ".join(found)[:200]


def _short(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


def _line() -> str:
    """The user's line that called an operator."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not any(home in name for home in _HOMES):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
