"""The bookkeeping of one training step in an eager framework: who is running, what flowed in and out, and from where.

    enter(fc) ──► input rows ──► (children) ──► leave(outputs) ──► output rows, computed from inputs and children
                                                      │ backward
                                                      ▼
        grad_input rows of whoever consumed it  ──►  grad_output row of whoever made it

A framework's adapter finds the seams and calls these verbs; nothing here knows a framework. How a tensor becomes a
row is told in rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from misstep.adapters.base import Listener, Place
from misstep.adapters.step.backward import BackwardPath
from misstep.adapters.step.calls import MOST_CALLS, Call, Measure
from misstep.adapters.step.rows import Rows
from misstep.core.address import Role
from misstep.core.graph import Phase, Source


class Flow(Rows):
    """The step under way, as calls and rows."""

    def __init__(self, listener: Listener, measure: Measure, glance: Measure | None = None) -> None:
        super().__init__(listener, measure, glance)
        self.outside = Call(-1, "", 1, None)
        self.stack: list[Call] = [self.outside]
        self._sites: dict[tuple[str, str, str, int], tuple[int, str]] = {}
        self._backward_nodes: dict[int, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._forget_rows()
        self._counts: dict[int, int] = {}
        self._calls: dict[int, list[Call]] = {}
        self._owners: dict[int, list[tuple[Call, int]]] = {}
        self._consumers: dict[int, list[tuple[Call, int]]] = {}
        self._parameter_gradients: dict[str, int] = {}
        self._last_gradient: int | None = None
        self._backward: BackwardPath[Call] = BackwardPath(lambda call: (call.node, call.call))
        self.losses: list[int] = []
        self.outside.made.clear()

    def share_names(self, other: Flow) -> None:
        """Operators are named once in a run, whoever watches."""
        self._sites, self._backward_nodes = other._sites, other._backward_nodes

    def take_over(self, other: Flow) -> None:
        """Go on with what another flow saw of this step."""
        self._clear()
        self._parameter_gradients = other._parameter_gradients
        self.losses = other.losses

    def end_step(self) -> None:
        """Forget everything of the step; the listener has begun the next frame."""
        self._clear()
        del self.stack[1:]

    # ── forward ───────────────────────────────────────────────────────────────────────────────────────────────

    def enter(self, node: int, name: str, tensors: Sequence[Any]) -> Call | None:
        """A module begins: rows for what it was given. None when it ran too often in this step to be kept apart."""
        call = self._new_call(node, name)
        if call is None:
            return None
        call.inputs = self._take(call, tensors)
        self.stack.append(call)
        if self.listener.stepping:
            self.listener.at_node(Place(node, "forward", "before", "module", call.call))
        return call

    def leave(self, call: Call, tensors: Sequence[Any]) -> list[tuple[Any, int]]:
        """A module is done: rows for what it returned. (tensor, row that first saw it) of each."""
        self.unwind(call)
        made = self._give(call, tensors, (*call.inputs, *call.made))
        if self.listener.stepping:
            self.listener.at_node(Place(call.node, "forward", "after", "module", call.call))
        return made

    def own_backward(self, call: Call, source: Source) -> None:
        """The user wrote the backward of this module, at this line: what runs inside of it has none."""
        if call.node not in self._backward_nodes:
            self._backward_nodes[call.node] = self.listener.catalog.node(
                f"{call.name}/bprop", "operator", "bprop", phase="backward", source=source, forward=call.name
            )

    def unwind(self, call: Call) -> None:
        """Forget a call and everything above it, also when it ended by an exception."""
        if call in self.stack:
            del self.stack[self.stack.index(call) :]

    def operator_node(
        self,
        type: str,
        source: Source | None,
        phase: Phase = "forward",
        *,
        settings: Callable[[], dict[str, str]] = dict,
    ) -> tuple[int, str]:
        """The node of an operator at a line, below the module that runs it; a second line gets a name of its own."""
        scope = self.stack[-1].name or "script"
        site = (scope, type, source.file if source else "", source.line if source else 0)
        known = self._sites.get(site)
        if known is None:
            catalog = self.listener.catalog
            name, number = f"{scope}/{type}", 1
            while catalog.graph.node(name) is not None:
                number += 1
                name = f"{scope}/{type}_{number}"
            known = self._sites[site] = (
                catalog.node(name, "operator", type, phase=phase, source=source, settings=settings),
                name,
            )
        return known

    def before_operator(self, node: int, name: str, tensors: Sequence[Any], phase: Phase = "forward") -> Call | None:
        call = self._new_call(node, name, operator=True)
        if call is None:
            return None
        call.inputs = self._take(call, tensors)
        if self.listener.stepping:
            self.listener.at_node(Place(node, phase, "before", "operator", call.call))
        return call

    def after_operator(self, call: Call, tensors: Sequence[Any], phase: Phase = "forward") -> None:
        self._give(call, tensors, call.inputs)
        if self.listener.stepping:
            self.listener.at_node(Place(call.node, phase, "after", "operator", call.call))

    def loss(self, tensor: Any) -> None:
        """What backward is about to start from."""
        catalog = self.listener.catalog
        call = self._new_call(catalog.node("loss", "loss", "Loss", phase="loss"), "loss")
        if call is None:
            return
        row = self.put(call, "loss", 0, tensor, tuple(self.outside.made) or None)
        if row is not None:
            self.losses.append(row)
        if self.listener.stepping:
            self.listener.at_node(Place(call.node, "loss", "after", "module", call.call))

    # ── backward and update ───────────────────────────────────────────────────────────────────────────────────

    def gradient_of(self, row: int, tensor: Any) -> None:
        """The gradient of the tensor first seen in `row` has arrived: complete, and about to flow into its maker."""
        made: list[int] = []
        consumers = self._consumers.get(row, ())
        for call, slot in reversed(consumers):  # innermost first, so that it is blamed first
            found = self._made_by_backward(call, slot, tensor, consumers)
            if found is not None:
                made.append(found)
        owners = self._owners.get(row, [])
        for call, slot in owners:
            if call.operator and made:
                call.gradients.append(made[0])
                continue
            found = self.put(call, "grad_output", slot, tensor, (made[0],) if made else None)
            if found is not None:
                call.gradients.append(found)
                self._last_gradient = found
        places = self._passed(row, owners)
        if self.listener.stepping:
            for place in places:
                self.listener.at_node(place)

    def _passed(self, row: int, owners: Sequence[tuple[Call, int]]) -> list[Place]:
        """Backward leaves whatever took this tensor, the innermost first, and enters whatever gave it."""
        places: list[Place] = []
        for call, _ in reversed(self._consumers.get(row, ())):
            if call.operator:
                places.append(Place(self._backward_node(call.node), "backward", "after", "operator", call.call))
            elif (place := self._backward.leaves(call, row)) is not None:
                places.append(place)
        for call, _ in reversed(owners):
            if call.operator:
                places.append(Place(self._backward_node(call.node), "backward", "before", "operator", call.call))
            elif (place := self._backward.enters(call)) is not None:
                places.append(place)
        return places

    def backward_ends(self) -> None:
        """Modules whose inputs need no gradient (the first of a network) are done when all of backward is."""
        for place in self._backward.ends():
            if self.listener.stepping:
                self.listener.at_node(place)

    def gradients(self, named: Iterable[tuple[str, Any, Any, Sequence[int]]]) -> None:
        """Rows for parameter gradients, in one kernel call: (name, parameter, gradient, nodes that use it)."""
        batch: list[tuple[str, Role, Any, tuple[int, ...] | None]] = []
        for name, parameter, gradient, users in named:
            row = self.row_of(parameter)
            operators = (
                [entry for entry in self._consumers.get(row, ()) if entry[0].operator] if row is not None else []
            )
            made = [self._made_by_backward(call, slot, gradient, operators) for call, slot in operators]
            inputs = tuple(one for one in made if one is not None) or tuple(
                one for user in users for call in self._calls.get(user, ()) for one in call.gradients
            )
            batch.append((name, "grad", gradient, inputs or None))
        for (name, *_), row in zip(batch, self._put_many(batch, self.listener.frame)):
            self._parameter_gradients[name] = row

    def weights(self, named: Iterable[tuple[str, Any]], *, watched: bool = False) -> None:
        """Rows for weights after an update, each computed from its gradient, or, where the operators of the update were
        watched, by the one that wrote it."""
        gradients = self._parameter_gradients
        batch: list[tuple[str, Role, Any, tuple[int, ...] | None]] = []
        for name, tensor in named:
            source = self.row_of(tensor) if watched else None
            source = gradients.get(name) if source is None else source
            batch.append((name, "param", tensor, None if source is None else (source,)))
        self._put_many(batch, self.listener.frame)

    def found(self, named: Iterable[tuple[str, Any]]) -> None:
        """Rows for weights as an update finds them: its operators refer to them by their own names."""
        catalog = self.listener.catalog
        for name, tensor in named:
            if self.row_of(tensor) is None:
                self.put(Call(catalog.node(name, "parameter", "Parameter"), name, 1, None), "input", 0, tensor, None)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _new_call(self, node: int, name: str, *, operator: bool = False) -> Call | None:
        count = self._counts[node] = self._counts.get(node, 0) + 1
        if count > MOST_CALLS:
            return None
        call = Call(node, name, count, self.stack[-1], operator)
        self._calls.setdefault(node, []).append(call)
        return call

    def _take(self, call: Call, tensors: Sequence[Any]) -> tuple[int, ...]:
        """Input rows. What the enclosing code made of earlier rows and handed in counts as computed from them."""
        scope = self.stack[-1]
        around: tuple[int, ...] | None = (*scope.inputs, *scope.made) or None
        inside_own = any(one.node in self._backward_nodes for one in self.stack)
        rows = []
        for slot, tensor in enumerate(tensors):
            memory = self._look_at(tensor)
            if memory is None:
                continue
            source = self._known(memory)
            if source is not None and call.operator:
                row: int | None = source
            else:
                computed_from = None if source is not None or call.operator else around
                row = self.put(call, "input", slot, tensor, computed_from, memory=memory)
            if row is None:
                continue
            if source is None and call.operator and self.listener.frame.nonfinite(row):
                self._find_original(row)
            rows.append(row)
            if not inside_own:
                self._consumers.setdefault(row if source is None else source, []).append((call, slot))
            if source is not None:
                self._connect(source, call, slot)
                if self.has_maker(source):
                    self._backward.awaits(call, source)
        return tuple(rows)

    def _give(self, call: Call, tensors: Sequence[Any], inputs: tuple[int, ...]) -> list[tuple[Any, int]]:
        rows, made = [], []
        for slot, tensor in enumerate(tensors):
            memory = self._look_at(tensor)
            if memory is None:
                continue
            source = None if call.operator else self._known(memory)
            row = self.put(call, "output", slot, tensor, inputs, fresh=call.operator, memory=memory)
            if row is None:
                continue
            rows.append(row)
            first = row if source is None else source
            made.append((tensor, first))
            self._owners.setdefault(first, []).append((call, slot))
        call.outputs = tuple(rows)
        if call.parent is not None:
            call.parent.made.extend(rows)
        return made

    def has_maker(self, row: int) -> bool:
        """Whether something that was watched returned this tensor: only then does its gradient say anything."""
        return row in self._owners

    def _connect(self, source: int, call: Call, slot: int) -> None:
        catalog = self.listener.catalog
        key = catalog.graph.tensors[self.listener.frame.tensors[source]]
        if key.role == "output" and key.node != call.node:
            catalog.edge(key.node, call.node, key.slot, slot)

    def _made_by_backward(
        self, call: Call, slot: int, gradient: Any, consumers: Sequence[tuple[Call, int]]
    ) -> int | None:
        """The gradient of an input is what the backward of its consumer made of the gradients of its outputs, and the
        sum over all consumers: whatever reached one of them may have spoiled it."""
        others = [one for one, _ in consumers if one is not call and one.operator == call.operator]
        upstream = tuple(call.gradients)
        if not upstream and call.operator:  # its output was hooked in vain: what arrived last is the nearest known
            upstream = tuple(self.losses) if self._last_gradient is None else (self._last_gradient,)
        upstream = (*upstream, *(row for one in others for row in one.gradients))
        if not call.operator and call.node not in self._backward_nodes:
            return self.put(call, "grad_input", slot, gradient, upstream or None)
        # The backward of an operator reads what forward left: an overflow there explains a NaN here.
        node = self._backward_node(call.node)
        backward = Call(node, "", call.call, None, operator=True)
        row = self.put(backward, "output", slot, gradient, (*upstream, *call.inputs, *call.outputs))
        self._last_gradient = row if row is not None else self._last_gradient
        if row is not None and not call.operator:
            self.put(call, "grad_input", slot, gradient, (row,))
        return row

    def _backward_node(self, forward: int) -> int:
        node = self._backward_nodes.get(forward)
        if node is None:
            of = self.listener.catalog.graph.nodes[forward]
            node = self._backward_nodes[forward] = self.listener.catalog.node(
                f"{of.name}Grad", "operator", f"{of.type}Grad", phase="backward", source=of.source, forward=of.name
            )
        return node
