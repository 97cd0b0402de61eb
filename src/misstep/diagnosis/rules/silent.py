"""Faults that nothing reports: training goes on, the loss looks like a loss, and it learns nothing or something wrong.

weights_unchanged   gradients are there, an update is called, and no weight moves
hidden_nan          NaN goes into a layer whose kernel makes a number of it

Both are real on MindSpore's CPU: in-place tensor operators return a new tensor and change nothing, so the optimizers of
`mint.optim` never update; ReLU makes 0 of NaN and MaxPool leaves it out, so the loss stays finite.
"""

from __future__ import annotations

import re
from collections import defaultdict

from misstep.core.finding import Finding
from misstep.core.graph import Node
from misstep.core.stats import TensorStats
from misstep.errors import AddressError
from misstep.sentences import findings as texts
from misstep.sentences.words import UNKNOWN
from misstep.store.reading.reader import Run

STEPS = 8
"""The last steps looked at: enough to be sure, and cheap on a run of a week."""
LEAST_UPDATES = 2
"""Updates in a row that moved nothing, before it is said."""
LAST_BIT = 2.0**-25
"""Half of the last bit of a float32, relative: a smaller step is rounded away."""
HIDES_NAN = re.compile(r"ReLU6?|MaxPool\w*")


def all_findings(run: Run) -> list[Finding]:
    """What was noted while the run was recorded, and what nothing noted."""
    return [*run.findings, *silent_findings(run)]


def silent_findings(run: Run) -> list[Finding]:
    """Silent faults of every rank, the gravest first."""
    found = []
    for rank in run.ranks:
        found += [finding for finding in (weights_unchanged(run, rank), hidden_nan(run, rank)) if finding is not None]
    return found


def weights_unchanged(run: Run, rank: int) -> Finding | None:
    """Weights whose statistics stay the same to the last bit while their gradients are not zero."""
    weights = _series(run, rank, "*:param")
    gradients = _series(run, rank, "*:grad")
    stuck, moved = [], 0
    for name, steps in weights.items():
        updates = [
            number
            for number in steps
            if number - 1 in steps and number in gradients.get(name, {}) and gradients[name][number].l2 > 0
        ]
        if len(updates) < LEAST_UPDATES:
            continue
        if all(steps[number] == steps[number - 1] for number in updates):
            stuck.append(name)
        else:
            moved += 1
    # One frozen layer is a choice; a whole network that stands still is not.
    if not stuck or moved > len(stuck):
        return None
    last = max(max(weights[name]) for name in stuck)
    rate = next((step.learning_rate for step in reversed(run.steps(rank)) if step.learning_rate is not None), None)
    optimizer = next((step.optimizer for step in reversed(run.steps(rank)) if step.optimizer), "")
    shown = stuck[:4] + (["…"] if len(stuck) > 4 else [])
    return Finding(
        rule="silent.weights_unchanged",
        title=texts.WEIGHTS_UNCHANGED.of(count=len(stuck)),
        severity="error",
        step=last,
        rank=rank,
        evidence=(
            texts.SAME_BITS.of(names=shown),
            texts.OPTIMIZER.of(optimizer=optimizer or UNKNOWN, rate=rate if rate is not None else UNKNOWN),
        ),
        advice=_too_small([(weights[name], gradients[name]) for name in stuck], rate) or _advice(run, rate),
        command=f"misstep show {run.name} '{stuck[0]}:*'",
        detail={"weights": len(stuck)},
    )


def hidden_nan(run: Run, rank: int) -> Finding | None:
    """The first layer that was given NaN and returned none."""
    types = {node.name: node for node in run.graph(rank).nodes if HIDES_NAN.fullmatch(node.type)}
    for name, node in types.items():
        inputs = _series(run, rank, f"{_literal(name)}:input")
        outputs = _series(run, rank, f"{_literal(name)}:output")
        for number, stats in sorted(inputs.get(name, {}).items()):
            after = outputs.get(name, {}).get(number)
            if stats.nan and after is not None and not after.nan:
                return _hidden(node, number, rank, stats)
    return None


def _hidden(node: Node, step: int, rank: int, stats: TensorStats) -> Finding:
    return Finding(
        rule="silent.hidden_nan",
        title=texts.HIDDEN_NAN.of(node=node.name, type=node.type, count=stats.nan, step=step),
        severity="error",
        step=step,
        rank=rank,
        evidence=(
            texts.TENSOR_HAS.of(address=f"{node.name}:input@{step}", found=stats.describe()),
            str(node.source) if node.source else "",
        ),
        advice=texts.WRONG_VALUES.of(),
        command=f"misstep run --level op --steps {step}:{step} …",
    )


def _too_small(pairs: list[tuple[dict[int, TensorStats], dict[int, TensorStats]]], rate: float | None) -> str:
    """A sentence when no gradient times the rate is large enough to change the last bit of its weight."""
    largest = 0.0
    for weights, gradients in pairs:
        weight = max(max(abs(one.min), abs(one.max)) for one in weights.values())
        gradient = max(max(abs(one.min), abs(one.max)) for one in gradients.values())
        largest = max(largest, gradient)
        if not rate or gradient * rate > LAST_BIT * weight:
            return ""
    return texts.TOO_SMALL.of(largest=largest)


def _advice(run: Run, rate: float | None) -> str:
    if rate == 0:
        return texts.RATE_ZERO.of()
    return texts.MINT_ON_CPU.of() if "mindspore" in run.info.versions else texts.OTHER_TENSORS.of()


def _series(run: Run, rank: int, pattern: str) -> dict[str, dict[int, TensorStats]]:
    """By node and step, of the last steps that were looked at closely; the first slot and call."""
    last = max((step.number for step in run.steps(rank) if step.captured in ("module", "op")), default=0)
    found: dict[str, dict[int, TensorStats]] = defaultdict(dict)
    try:
        rows = run.stats(pattern, rank=rank, steps=range(max(last - STEPS, 0), last + 1))
    except AddressError:
        return {}
    for address, stats in rows:
        if address.slot == 0 and address.call == 1:
            found[address.node][address.step or 0] = stats
    return found


def _literal(name: str) -> str:
    return re.sub(r"[\[*?]", "?", name)
