"""Where a debugged training is on its way to: the next node, a named node, the end of a step, until something holds.

A goal is never silently overshot: the ones inside a step carry the step they will not pass.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from misstep.core.address import Address
from misstep.core.graph import Phase, Source
from misstep.core.run import Step
from misstep.errors import ControlError, MisstepError
from misstep.protocol.messages import Command
from misstep.protocol.views import PlaceView, Reason, source_view
from misstep.sentences import control as texts
from misstep.sentences.words import PHASES, word


@dataclass(frozen=True, slots=True)
class Spot:
    """Where training is inside a step: before or after a node ran."""

    node: str
    phase: Phase
    when: Literal["before", "after"]
    kind: Literal["module", "operator", "optimizer"] = "module"
    type: str = ""
    call: int = 1
    source: Source | None = None

    def view(self) -> PlaceView:
        return PlaceView(
            self.node, self.phase, self.when, self.kind, self.type, self.call, source_view(self.source)
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What is known when a step ends."""

    step: int
    loss: float | None = None
    learning_rate: float | None = None
    gradient_norm: float | None = None
    epoch: int | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, step: Step | int) -> StepFacts:
        if isinstance(step, int):
            return cls(step)
        return cls(step.number, step.loss, step.learning_rate, step.gradient_norm, step.epoch, step.seconds)


@dataclass(frozen=True, slots=True)
class Soon:
    """Stop at the next node or boundary."""

    def said(self) -> str:
        return texts.NEXT_NODE.of()


@dataclass(frozen=True, slots=True)
class AtStep:
    """Stop when this step has ended; a meeting of ranks carries the reason of whoever called it."""

    step: int
    reason: Reason | None = None

    def said(self) -> str:
        return texts.END_OF_STEP.of(step=self.step)


@dataclass(frozen=True, slots=True)
class NextNode:
    limit: int
    """The step that is never passed."""
    pynative: bool = False
    """Of a step of compiled code, which is run in PyNative for this."""

    def said(self) -> str:
        return texts.FIRST_IN_PYNATIVE.of(step=self.limit) if self.pynative else texts.NEXT_NODE.of()


@dataclass(frozen=True, slots=True)
class ToNode:
    """Stop at a node: `decoder.2` after its forward, `decoder.2:input` before it, `decoder.2:grad_output` before its
    backward, `decoder.2:grad_input` after it."""

    node: str
    limit: int
    phase: Phase | None = None
    when: Literal["before", "after"] = "after"
    call: int | None = None

    def matches(self, spot: Spot) -> bool:
        return (
            spot.node == self.node
            and spot.when == self.when
            and (self.phase is None or spot.phase == self.phase)
            and (self.call is None or spot.call == self.call)
        )

    def said(self) -> str:
        place = (texts.BEFORE_NODE if self.when == "before" else texts.AFTER_NODE).of(node=self.node)
        if self.phase is None or self.phase == "forward":
            return place
        return texts.IN_PHASE.of(place=place, phase=word(PHASES, self.phase))


class Until:
    """A question asked at the end of every step: 'loss > 10', 'step >= 40 or time > 60', 'loss == nan'."""

    NAMES = ("step", "loss", "time", "learning_rate", "gradient_norm", "epoch")

    def __init__(self, text: str, *, now: float) -> None:
        self.text = text.strip()
        self.since = now
        if len(text) > 500:
            raise self._unreadable()
        self._any = [
            [self._clause(part) for part in re.split(r"\band\b", either)] for either in re.split(r"\bor\b", text)
        ]

    def holds(self, facts: StepFacts, *, now: float) -> bool:
        values: dict[str, float | None] = {
            "step": facts.step,
            "loss": facts.loss,
            "time": now - self.since,
            "learning_rate": facts.learning_rate,
            "gradient_norm": facts.gradient_norm,
            "epoch": facts.epoch,
        }
        return any(
            all(_compare(values[name], relation, bound) for name, relation, bound in every) for every in self._any
        )

    def _clause(self, text: str) -> tuple[str, str, float]:
        found = _CLAUSE.fullmatch(text.strip())
        name = found["name"] if found else ""
        name = {"lr": "learning_rate", "seconds": "time", "grad_norm": "gradient_norm"}.get(name, name)
        if found is None or name not in self.NAMES:
            raise self._unreadable()
        return name, found["relation"], float(found["bound"])

    def _unreadable(self) -> ControlError:
        return ControlError(texts.UNREADABLE_UNTIL.of(text=self.text[:80], names=self.NAMES), code="bad_request")

    def said(self) -> str:
        return self.text


Goal = Soon | AtStep | NextNode | ToNode | Until

_CLAUSE = re.compile(
    r"(?P<name>\w+)\s*(?P<relation>[<>]=?|[=!]=)\s*(?P<bound>[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|nan|inf))"
)
_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _compare(value: float | None, relation: str, bound: float) -> bool:
    if value is None:
        return False
    if math.isnan(bound):
        return math.isnan(value) == (relation == "==")
    return _RELATIONS[relation](value, bound)


def to_node(command: Command, *, limit: int) -> ToNode:
    """Where a run_to command wants to go; an address's role says which pass, and before or after."""
    try:
        address = Address.parse(command.node)
    except MisstepError as error:
        raise ControlError(str(error), code="bad_request") from None
    phase, when = command.phase, command.when
    if ":" in command.node:
        role_phase, role_when = _OF_ROLE.get(address.role, ("forward", "after"))
        phase, when = phase or role_phase, when or role_when
    call = command.call if command.call is not None else address.call if "~" in command.node else None
    return ToNode(address.node, limit, phase, when or "after", call)


_OF_ROLE: dict[str, tuple[Phase, Literal["before", "after"]]] = {
    "input": ("forward", "before"),
    "output": ("forward", "after"),
    "grad_output": ("backward", "before"),
    "grad_input": ("backward", "after"),
    "grad": ("optimizer", "before"),
    "param": ("optimizer", "after"),
}
