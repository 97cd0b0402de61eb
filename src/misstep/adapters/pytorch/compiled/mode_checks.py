"""Compiled against uncompiled, inside the training: the graphs of one step are checked with the inputs they really had.

    Dynamo ─► OutputGraph.call_user_compiler ─► backend       we keep a copy of the graph, and stand before its code
    at the step asked for: inputs copied ─► compiled code ─► operators_apart.check

Only `misstep compare-modes` installs this. Training computes what it would: the check works on copies, and random
numbers are drawn from a stream of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import fx

from misstep.adapters.base import SessionPort
from misstep.adapters.pytorch.compiled.lines import node_line
from misstep.adapters.pytorch.compiled.operators_apart import Backend, Judged, Outcome, check, copied

_REPRODUCTION = '''"""{title}

Run it by itself:  python {name}.py
"""

import torch
import torch.fx
from torch import device, inf, nan, tensor  # names the graph may use

{code}

inputs = torch.load("{name}.pt", weights_only=True)
plain = Repro()(*inputs)
compiled = torch.compile(Repro(), backend={backend!r})(*inputs)
for one, other in zip(plain, compiled):
    print("largest difference:", (one.double() - other.double()).abs().max().item(), "of", one.abs().max().item())
'''


class ModeChecks:
    """Of one training process."""

    def __init__(self, session: SessionPort, quietly: Callable[[Callable[[], None]], None]) -> None:
        self._session = session
        self._quietly = quietly
        """Runs something of ours that training must not notice."""
        self._graphs = 0

    def install(self) -> Callable[[], None]:
        from torch._dynamo.output_graph import OutputGraph

        owner: Any = OutputGraph
        original = owner.call_user_compiler

        def call_user_compiler(output: Any, graph: fx.GraphModule, inputs: list[Any]) -> Any:
            kept = fx.GraphModule(graph, copy.deepcopy(graph.graph))
            return self._standing_before(original(output, graph, inputs), kept, output.compiler_fn)

        owner.call_user_compiler = call_user_compiler

        def undo() -> None:
            if owner.call_user_compiler is call_user_compiler:
                owner.call_user_compiler = original

        return undo

    def _standing_before(self, compiled: Callable[..., Any], graph: fx.GraphModule, backend: Backend) -> Any:
        number, checked = self._graphs, False
        self._graphs += 1

        def run(*inputs: Any) -> Any:
            nonlocal checked
            if checked or self._session.step < self._session.settings.compare_modes:
                return compiled(*inputs)
            checked = True
            held = copied(inputs)
            result = compiled(*inputs)
            self._quietly(lambda: self._check(number, graph, held, backend))
            return result

        return torch._dynamo.disable(run)

    def _check(self, number: int, graph: fx.GraphModule, inputs: list[Any], backend: Backend) -> None:
        session = self._session
        try:
            outcome = check(graph, inputs, backend)
        except Exception as error:  # a graph that cannot be taken apart is told as not compared, never as the same
            why = f"{type(error).__name__}: {error}"[:300]
            session.event("mode_check", graph=number, step=session.step, unchecked=why)
            return
        facts = outcome_facts(outcome)
        if outcome.worst is not None and outcome.worst.wrong:
            facts["reproduction"] = self._reproduction(number, graph, inputs, backend, outcome.worst)
        session.event("mode_check", graph=number, step=session.step, **facts)

    def _reproduction(
        self, number: int, graph: fx.GraphModule, inputs: list[Any], backend: Backend, worst: Judged
    ) -> str:
        """A script of its own beside the run: the graph, its inputs, both results."""
        from torch._dynamo.debug_utils import NNModuleToString

        folder = self._session.run_directory
        if folder is None:
            return ""
        name = f"miscompiled-{self._session.rank}-{number}"
        path = Path(folder) / f"{name}.py"
        torch.save(inputs, path.with_suffix(".pt"))
        text = _REPRODUCTION.format(
            title=f"{worst.operator} is miscompiled in this graph.",
            name=name,
            code=NNModuleToString.convert(graph),
            backend=getattr(backend, "compiler_name", "inductor"),
        )
        path.write_text(text, encoding="utf-8")
        return path.name


def outcome_facts(outcome: Outcome) -> dict[str, Any]:
    """A checked graph as a line of the journal."""
    facts: dict[str, Any] = {"compared": outcome.compared, "random": outcome.random, "backward": outcome.backward}
    worst = outcome.worst
    if worst is not None:
        file, line = node_line(worst.node) or ("", 0)
        facts |= {
            "operator": worst.operator,
            "file": file,
            "line": line,
            "compiled_error": worst.compiled,
            "eager_error": worst.eager,
            "allowed": worst.allowed,
            "wrong": worst.wrong,
            "unstable": worst.unstable,
        }
    return facts
