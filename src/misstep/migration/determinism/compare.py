"""Two records of one program: which stage is not fixed, and the source that points to.

The first difference decides; what follows from it says nothing. A generator is to blame when it was used before the
first pass and stood elsewhere; an operator when it made other numbers of the same ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from misstep.migration.determinism.record import Operation, Record

Stage = Literal["weights", "inputs", "forward", "backward"]
STAGES: tuple[Stage, ...] = ("weights", "inputs", "forward", "backward")
Cause = Literal[
    "seed", "clock", "shuffle", "workers", "dropout", "drawn", "hash", "threads", "operator", "outside", "unknown"
]
_DROPOUTS = ("native_dropout", "bernoulli", "alpha_dropout", "feature_dropout")
_DRAWS = ("rand", "normal", "uniform", "multinomial", "exponential", "random", "poisson", "geometric", "cauchy")


@dataclass(frozen=True, slots=True)
class Difference:
    """What two runs of one program first differ by."""

    stage: Stage
    cause: Cause
    detail: str = ""
    where: str = ""


def fixed(one: Record, other: Record) -> dict[Stage, bool]:
    """Which stages came out the same in both."""
    sides = [[each for each in side.operations if not each.backward] for side in (one, other)]
    return {
        "weights": one.weights == other.weights,
        "inputs": one.inputs == other.inputs,
        "forward": _made(sides[0]) == _made(sides[1]),
        "backward": one.gradients == other.gradients,
    }


def _made(operations: list[Operation]) -> list[tuple[str, str]]:
    return [(one.name, one.made) for one in operations if not _unwritten(one)]


def _unwritten(one: Operation) -> bool:
    """Memory nobody has written yet: its numbers mean nothing until somebody reads them."""
    return "empty" in one.name


def first_difference(one: Record, other: Record) -> Difference | None:
    """None when both are the same from the weights to the last gradient."""
    same = fixed(one, other)
    if all(same.values()):
        return None
    if not same["weights"]:
        return _generator("weights", one, other) or Difference("weights", "hash")
    if not same["inputs"]:
        return _of_inputs(one, other)
    return _of_operators(one, other, "forward" if not same["forward"] else "backward")


def _generator(stage: Stage, one: Record, other: Record) -> Difference | None:
    """A generator that was used and stood elsewhere; one that was seeded with another number."""
    for name in one.used:
        if one.generators[name][1] != other.generators.get(name, ("", ""))[1]:
            if name == "torch" and _by_hand(one) and _by_hand(other) and one.seed != other.seed:
                return Difference(stage, "clock", f"{one.seed}, {other.seed}")
            return Difference(stage, "seed", name)
    return None


def _by_hand(record: Record) -> bool:
    """A seed somebody typed or read off a clock is small; the one PyTorch draws at the start uses all its bits."""
    return record.seed is not None and record.seed < 2**40


def _of_inputs(one: Record, other: Record) -> Difference:
    ours, theirs = (Counter(sample for batch in side.inputs for sample in batch) for side in (one, other))
    shared = sum((ours & theirs).values()) / max(1, sum(ours.values()))
    if shared > 0.5:
        guilty = _generator("inputs", one, other)
        return Difference(
            "inputs", "shuffle" if one.shuffled or guilty is None else "seed", guilty.detail if guilty else ""
        )
    if one.workers:
        return Difference("inputs", "workers", str(one.workers))
    return _generator("inputs", one, other) or Difference("inputs", "hash")


def _of_operators(one: Record, other: Record, stage: Stage) -> Difference:
    """The first operator that made something else: drawn, fed from outside, or not deterministic itself."""
    unwritten: set[str] = set()
    for ours, theirs in zip(one.operations, other.operations):
        if ours.name != theirs.name:
            return Difference(stage, "outside", f"{ours.name}, {theirs.name}", ours.where)
        if _unwritten(ours):
            unwritten.add(ours.made)
            continue
        if ours.made == theirs.made:
            continue
        word = ours.name.removeprefix("aten.").removesuffix(".default").rstrip("_")
        if any(word.startswith(each) for each in _DROPOUTS):
            return Difference(stage, "dropout", word, ours.where)
        if any(word.startswith(each) for each in _DRAWS):
            return Difference(stage, "drawn", word, ours.where)
        if unwritten & set(ours.given.split()):
            return Difference(stage, "operator", f"{word} (empty)", ours.where)
        if ours.given != theirs.given or ours.settings != theirs.settings:
            return Difference(stage, "outside", word, ours.where)
        return Difference(stage, "operator", word, ours.where)
    return Difference(stage, "unknown")
