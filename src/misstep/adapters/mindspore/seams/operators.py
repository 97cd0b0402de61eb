"""Every operator of a forward pass, with its line in the user's program.

A dispatch mode sees each call. Tensors arrive there in fresh wrappers, so memory is known by its address while the step
holds on to it. Gradients are heard by a hook on the tensor as it is *consumed*: a hook on what an operator returned is
lost with the wrapper (measured: 4 of 11 fire), one on what it is given fires but for the loss, which nobody consumes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mindspore.utils import MsDispatchMode

from misstep.adapters.mindspore.graph.unwritten_outputs import written
from misstep.adapters.mindspore.names import users_line
from misstep.adapters.mindspore.tensors import leaves
from misstep.adapters.settings import arguments_of
from misstep.core.graph import Phase
from misstep.errors import ReplayError
from misstep.sentences.replay import WAITS_FOR_RANKS

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

NO_OPERATORS = frozenset({"typeof"})
"""Questions about tensors that pass the dispatcher too."""

COLLECTIVES = frozenset(
    {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll", "Send", "Receive", "Barrier", "Reduce"}
)
"""They wait for other ranks, which do not run the step again."""

UNINITIALISED = frozenset({"Empty", "NewEmpty", "EmptyLike"})
"""Their outputs hold whatever lay in memory before: never evidence of anything."""


class OperatorWatch(MsDispatchMode):
    """On the dispatcher's stack while a forward pass is recorded at op level."""

    def __init__(self, adapter: MindSporeAdapter) -> None:
        super().__init__()
        self.adapter = adapter
        self.alone = False
        """This rank runs a step again by itself."""

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        adapter = self.adapter
        name = func.name
        if adapter.busy or name in NO_OPERATORS:
            return func(*args, **(kwargs or {}))
        self.refuse_to_wait(name)
        call = None
        with adapter.guarded(f"before {name}"):
            flow = adapter.flow
            phase: Phase = "forward" if flow.stack[1:] or not adapter.network_ran else "loss"
            # Primitives of the older kind arrive as (primitive, name, inputs).
            inputs = leaves((args, kwargs) if kwargs else args)
            node, full = flow.operator_node(
                name, users_line(sys._getframe(1)), phase, settings=lambda: arguments_of(args, kwargs or {})
            )
            call = flow.before_operator(node, full, inputs, phase)
            for tensor in inputs:
                adapter.hear_gradient(tensor)
        out = func(*args, **(kwargs or {}))
        if call is not None and name not in UNINITIALISED:
            with adapter.guarded(f"after {name}"):
                adapter.flow.after_operator(call, written(name, leaves(out)), phase)
        return out

    def refuse_to_wait(self, name: str) -> None:
        if self.alone and name.removeprefix("Inner").removeprefix("DistComm") in COLLECTIVES:
            raise ReplayError(WAITS_FOR_RANKS.of(name=name))
