"""A listener that writes everything down, and answers questions about it in addresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from misstep.adapters.base import Adapter, Place, Update
from misstep.adapters.replaying.protocol import Replayed
from misstep.adapters.step.frame import Catalog, Frame
from misstep.capture.step.verdict import find_verdict
from misstep.core.address import Address
from misstep.core.finding import Verdict
from misstep.core.graph import Node
from misstep.core.stats import ALIAS, DTYPE_NAMES, INPUTS_BAD, INPUTS_SEEN, Array, TensorStats


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor at one step, as the adapter told it."""

    address: Address
    stats: TensorStats
    flags: int

    @property
    def alias(self) -> bool:
        return bool(self.flags & ALIAS)

    @property
    def origin(self) -> bool:
        """Bad, though everything it was computed from was looked at and finite."""
        return not self.stats.finite and self.inputs_seen and not self.flags & INPUTS_BAD

    @property
    def inputs_seen(self) -> bool:
        return bool(self.flags & INPUTS_SEEN)


class Recording:
    """The Listener of the contract tests; `failing` names the methods that shall raise."""

    def __init__(self, *, stepping: bool = False, failing: tuple[str, ...] = ()) -> None:
        self.catalog = Catalog()
        self.frame = Frame(capacity=4)  # so small that every test makes it grow
        self.step = 1
        self.stepping = stepping
        self.shows_loss = True
        self.wants: dict[int, Callable[[int, Any], None]] = {}
        self.failing = failing
        self.events: list[str] = []
        self.updates: list[Update] = []
        self.places: list[Place] = []
        self.exceptions: list[tuple[BaseException, str]] = []
        self.troubles: list[tuple[str, BaseException]] = []
        self.gradients: dict[int, dict[str, Array]] = {}
        """By step: what the adapter answered when asked for each parameter's gradient before the update."""
        self.before: dict[int, dict[str, Array]] = {}
        """By step: every parameter's value before the update."""
        self.rows: list[Row] = []
        self.verdicts: list[Verdict] = []

    # ---- the Listener ----

    def going_live(self, adapter: Adapter) -> None:
        self.frame.begin(1)
        self._note("going_live")

    def initial(self, adapter: Adapter, frame: Frame) -> None:
        self._collect(frame)
        self._fail("initial")

    def at_node(self, place: Place) -> None:
        self.places.append(place)
        self._fail("at_node")

    def before_update(self, adapter: Adapter) -> None:
        named = list(adapter.parameters())
        self.before[self.step] = {name: adapter.array(parameter).copy() for name, parameter in named}
        found = {name: adapter.gradient(parameter) for name, parameter in named}
        self.gradients[self.step] = {
            name: adapter.array(gradient).copy() for name, gradient in found.items() if gradient is not None
        }
        self._note("before_update")

    def after_update(self, adapter: Adapter) -> None:
        self._note("after_update")

    def step_done(self, adapter: Adapter, update: Update) -> None:
        self._collect(self.frame)
        self.updates.append(update)
        self.step += 1
        self.frame.begin(self.step)
        self._note("step_done")

    def between_steps(self, adapter: Adapter, node: int, tensor: Any) -> None:
        self._note("between_steps")

    def exception(self, adapter: Adapter, error: BaseException, where: str) -> None:
        self.exceptions.append((error, where))
        self._note("exception")

    def trouble(self, where: str, error: BaseException) -> None:
        self.troubles.append((where, error))

    # ---- questions ----

    def row(self, text: str) -> Row:
        """The row at an address: `fc1:output@2`."""
        wanted = Address.parse(text)
        found = [row for row in self.rows if row.address == wanted]
        assert len(found) == 1, f"{len(found)} rows at {text}; there are {', '.join(self.addresses(wanted.step))}"
        return found[0]

    def stats(self, text: str) -> TensorStats:
        return self.row(text).stats

    def at(self, step: int | None) -> list[Row]:
        return [row for row in self.rows if step is None or row.address.step == step]

    def addresses(self, step: int | None = None, *roles: str) -> list[str]:
        """In execution order, without the step."""
        return [str(row.address).partition("@")[0] for row in self.at(step) if not roles or row.address.role in roles]

    def verdict(self) -> Verdict:
        """What the first bad step is put down to."""
        assert self.verdicts, "nothing was found wrong"
        return self.verdicts[0]

    def node(self, name: str) -> Node:
        node = self.catalog.graph.node(name)
        assert node is not None, f"no node {name!r}; there are {', '.join(self.catalog.graph.names())}"
        return node

    def consumers(self, name: str) -> list[str]:
        graph = self.catalog.graph
        return [graph.nodes[edge.target].name for edge in graph.consumers(self.node(name).index)]

    def _collect(self, frame: Frame) -> None:
        head, summary = frame.finish()
        verdict = find_verdict(self.catalog, frame, head, summary)
        if verdict is not None:
            self.verdicts.append(verdict)
        shapes = self.catalog.graph.shapes
        for one, record in zip(head, summary):
            stats = TensorStats.of(record, dtype=DTYPE_NAMES[one["dtype"]], shape=shapes[one["shape"]])
            address = self.catalog.address(int(one["tensor"]), step=int(one["step"]))
            self.rows.append(Row(address, stats, int(one["flags"])))

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._fail(event)

    def _fail(self, event: str) -> None:
        if event in self.failing:
            raise RuntimeError(f"planted in {event}")


class Replaying(Recording):
    """Keeps what replays saw, and the verdict on each."""

    def __init__(self) -> None:
        super().__init__()
        self.replays: list[Replayed] = []
        self.found: list[Verdict | None] = []

    def keep(self, replayed: Replayed) -> None:
        self.replays.append(replayed)
        head, summary = replayed.frame.finish()
        self.found.append(find_verdict(self.catalog, replayed.frame, head, summary))
