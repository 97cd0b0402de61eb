"""Compiled code as the step sees it: one call, put on the tape uncompiled, and run a second time where operators are
wanted.

    training:  compiled, untouched ──────────────► loss, gradients ──► update
                  └ tape: the function itself          │
    shadow:                 the same step, uncompiled ◄┘  every operator seen, for the steps the plan looks at closely

While the user asks for operators and the program compiles, the training itself is watched at module level only: a
dispatch mode would see kernels there, not operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident
from time import perf_counter_ns
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from misstep.adapters.pytorch.compiled.dynamo import backends, hear
from misstep.adapters.pytorch.compiled.holders import networks_of
from misstep.adapters.pytorch.compiled.mode_checks import ModeChecks
from misstep.adapters.pytorch.compiled.report import CompileReport
from misstep.adapters.pytorch.replay.entries import CompiledCall, Entry
from misstep.core.levels import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from misstep.adapters.base import SessionPort
    from misstep.adapters.pytorch.adapter import PyTorchAdapter


@dataclass(slots=True)
class Call:
    """A compiled function under way."""

    frame: FrameType
    entry: Entry | None = None
    outermost: bool = False


class CompiledCalls:
    """Hears compiled functions, and decides whether steps need a shadow."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self.adapter = adapter
        self.in_use = False
        """The program has compiled something."""
        self.ran = False
        """Compiled code ran in the step under way."""
        self.shadowing = False
        """Operators are asked for, and come from a second, uncompiled run of the step."""
        self.may_replay = True
        """Steps may be run again at all."""
        self.report = CompileReport()
        self._checks: ModeChecks | None = None
        """Checks compiled graphs against uncompiled code, when that was asked for."""
        self.opened: list[Call] = []
        """Compiled functions under way, the outermost first."""
        self._backends_before: set[int] = set()
        """Another program in this process, before ours was watched, may have compiled."""
        self._roots: dict[tuple[int, ...], nn.ModuleList] = {}

    def extend(self, session: SessionPort) -> None:
        self.may_replay = bool(session.settings.replay)
        if session.settings.compare_modes:
            self._checks = ModeChecks(session, self._unnoticed)

    def _unnoticed(self, work: Callable[[], None]) -> None:
        """Something of ours that runs the user's operators: nothing of it belongs to the training."""
        adapter = self.adapter
        adapter.inert = True
        try:
            work()
        finally:
            adapter.inert = False

    def install(self) -> Callable[[], None]:
        self._backends_before = backends()
        self.in_use = self.shadowing = False
        self.opened.clear()
        self.report.begin()
        undo = [hear(self._begins, self._ends, ours=nn.Module.__call__.__code__)]
        if self._checks is not None:
            undo.append(self._checks.install())

        def remove() -> None:
            while undo:
                undo.pop()()

        return remove

    # ── levels ────────────────────────────────────────────────────────────────────────────────────────────────

    def level_of(self, asked: Level) -> Level:
        """How to look at the training itself when this level is asked for."""
        self.shadowing = asked == "op" and self.may_replay and self._used()
        return "module" if self.shadowing else asked

    def _used(self, module: nn.Module | None = None) -> bool:
        self.in_use = (
            self.in_use
            or not backends() <= self._backends_before
            or (module is not None and any(is_compiled(part) for part in module.modules()))
        )
        return self.in_use

    def network_called(self, module: nn.Module) -> None:
        """Before the first module of a step runs: a program that has begun to compile gets a shadow from here on."""
        adapter = self.adapter
        if adapter.level == "op" and not self.shadowing and not adapter.replaying and self._used(module):
            adapter.set_level("op")
            adapter.arm_replay(False)

    def shadowed(self) -> None:
        """The step under way goes on as its shadow showed it: what is left of it, the update, is seen operator by
        operator."""
        if self.shadowing:
            self.adapter.level = "op"
            self.adapter.operators.start()

    def begin_step(self) -> None:
        self.ran = False
        if self.shadowing:
            self.adapter.level = "module"
            self.adapter.operators.stop()

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _begins(self, frame: FrameType) -> None:
        adapter = self.adapter
        if adapter.inert or adapter.replaying or adapter.thread not in (0, get_ident()):
            return
        self.in_use = self.ran = True
        start = perf_counter_ns()
        call = Call(frame)
        self.opened.append(call)
        adapter.guarded("before compiled code", self._begin, call)
        adapter.cost_ns += perf_counter_ns() - start

    def _begin(self, call: Call) -> None:
        adapter = self.adapter
        given = call.frame.f_locals
        function, args, kwargs = given["fn"], given["args"], given["kwargs"]
        self.report.hooks.called(function, args, kwargs)
        call.outermost = (
            len(self.opened) == 1
            and not adapter.modules.within
            and not adapter.modules.stack
            and not adapter.in_backward
            and adapter.updating is None
            and torch.is_grad_enabled()
        )
        if not call.outermost:
            return
        adapter.tape.pause()
        networks = networks_of(function, args, kwargs)
        for network in networks:
            adapter.names.adopt(network)
        if networks:
            adapter.network_called(networks[0], call.frame.f_back)
        call.entry = adapter.tape.compiled_begins(
            CompiledCall(function, args, kwargs, call.frame.f_back, networks, self._root(networks))
        )

    def _ends(self, frame: FrameType) -> None:
        if not self.opened or self.opened[-1].frame is not frame:
            return
        call = self.opened.pop()
        if not call.outermost:
            return
        start = perf_counter_ns()
        self.adapter.guarded("after compiled code", self._end, call)
        self.adapter.cost_ns += perf_counter_ns() - start

    def _end(self, call: Call) -> None:
        given = call.frame.f_locals
        self.adapter.tape.compiled_ends(call.entry, given.get("result"), failed=not given.get("call_succeeded"))

    def _root(self, networks: tuple[nn.Module, ...]) -> nn.Module | None:
        """One module that stands for all networks of a function: their state is held together."""
        if len(networks) < 2:
            return networks[0] if networks else None
        key = tuple(id(one) for one in networks)
        root = self._roots.get(key)
        if root is None or any(one is not other for one, other in zip(root, networks)):
            root = self._roots[key] = nn.ModuleList(networks)
        return root


def same_code_uncompiled() -> Any:
    """While open, compiled functions run as they were written; their compiled code stays in its caches."""
    return torch.compiler.set_stance("force_eager")


def is_compiled(module: nn.Module) -> bool:
    """Whether calling this module runs compiled code: `torch.compile(module)`, or `module.compile()`."""
    return wraps_compiled(module) or getattr(module, "_compiled_call_impl", None) is not None


def wraps_compiled(module: nn.Module) -> bool:
    """Whether this module is only the compiler's wrapper around another."""
    return type(module).__name__ == "OptimizedModule"
