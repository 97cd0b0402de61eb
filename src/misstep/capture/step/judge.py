"""What watchpoints say of a step: the questions of the settings, the rows they are asked of, and what the answers need.

Also for tensors that are there now, without recording anything: a recheck of the paused step, and the dry run of a
watchpoint that somebody is about to add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from misstep import kernels
from misstep.adapters.step.frame import Catalog, Frame
from misstep.capture.keep.ledger import Ledger
from misstep.capture.keep.previous import EvidenceRoom, RowEvidence
from misstep.core.graph import TensorKey
from misstep.core.stats import DTYPE_NAMES, INPUTS_BAD, Array, TensorStats
from misstep.core.watching.evaluate import DryRun, Evaluator
from misstep.core.watching.recommend import recommended
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.core.watching.watchtext import parse_watch
from misstep.sentences import journal
from misstep.settings import Settings

PREVIOUS_SHARE = 1 / 2
"""Of memory_mb, that previous values may take."""


class Judge:
    """Asks every watchpoint about rows."""

    def __init__(self, settings: Settings, catalog: Catalog, array: Callable[[Any], Array], ledger: Ledger) -> None:
        self.evaluator = Evaluator(first_watchpoints(settings), most_hits=settings.hits_per_watchpoint)
        self.evidence = EvidenceRoom(self.evaluator, ledger.account("previous values", share=PREVIOUS_SHARE), array)
        self._catalog = catalog
        self._memory_mb = settings.memory_mb
        self._refused_told = 0
        self._bad_weights: list[tuple[int, set[str]]] = []
        """Weights with NaN or Inf when a step ended, and their modules; of the last two steps that had such rows."""

    def hits(self, step: int, rank: int, head: Array, summary: Array) -> list[Hit]:
        if not len(head):
            return []
        self._blame_weights(step, head, summary)
        return self.evaluator.evaluate(step, rank, head, summary, self._evidence_for(head, summary, step))

    def hits_now(self, frame: Frame, rank: int) -> list[Hit]:
        return self.hits(frame.step, rank, *frame.finish())

    def dry_run(self, watch: Watchpoint, frame: Frame, rank: int) -> DryRun:
        """What a watchpoint would say of these rows; nothing is recorded."""
        head, summary = frame.finish()
        evidence = self._evidence_for(head, summary, frame.step)
        return self.evaluator.would_hit(watch, head, summary, evidence, rank=rank, step=frame.step)

    def refusal(self) -> str:
        """What the memory budget has no room for, when that is news."""
        refused = len(self.evidence.refused)
        if refused <= self._refused_told:
            return ""
        self._refused_told = refused
        return journal.NO_ROOM_BEFORE.of(count=refused, limit=self._memory_mb)

    def _blame_weights(self, step: int, head: Array, summary: Array) -> None:
        """A bad weight explains its module's output, and itself after the next update: else every step after the first
        NaN had an origin of its own."""
        if kernels.first_bad(summary, len(summary)) < 0:
            self._bad_weights.clear()
            return
        bad = np.flatnonzero(summary["nan"] + summary["pos_inf"] + summary["neg_inf"]).tolist()
        before = next((names for when, names in reversed(self._bad_weights) if when < step), set())
        now: set[str] = set()
        graph = self._catalog.graph
        for row in bad:
            key = graph.tensors[int(head["tensor"][row])]
            name = graph.nodes[key.node].name
            if key.role == "param":
                now.update((name, name.rpartition(".")[0]))
            if key.role in ("param", "output") and name in before:
                head["flags"][row] |= INPUTS_BAD
        earlier = [one for one in self._bad_weights if one[0] < step][-1:]
        self._bad_weights = [*earlier, (step, now or before)]

    def _evidence_for(self, head: Array, summary: Array, step: int) -> Callable[[int], RowEvidence]:
        def evidence(row: int) -> RowEvidence:
            shape = self._catalog.graph.shapes[int(head["shape"][row])]
            stats = TensorStats.of(summary[row], dtype=DTYPE_NAMES[int(head["dtype"][row])], shape=shape)
            return self.evidence.of(row, stats, step)

        return evidence


def first_watchpoints(settings: Settings) -> list[Watchpoint]:
    """The recommended ones, and those of `--watch`, with the actions the settings name."""
    watchpoints = list(recommended(cheap=True)) if settings.recommended else []
    on_nan = settings.on_nan
    if on_nan != "note":
        watchpoints = [
            replace(watch, then=on_nan) if watch.condition == "tensor_overflow" else watch for watch in watchpoints
        ]
    for text in filter(str.strip, settings.watch.split(";")):
        watch = parse_watch(text)
        if watch.then == "note" and " then " not in text:
            watch = replace(watch, then=settings.then)
        watchpoints.append(watch)
    return [replace(watch, id=0) for watch in watchpoints]


def gradient_norm(tensors: Sequence[TensorKey], head: Array, summary: Array) -> float | None:
    """Over all parameters whose gradient is among the rows; NaN when one is not finite, None without any."""
    rows = [row for row, number in enumerate(head["tensor"].tolist()) if tensors[number].role == "grad"]
    if not rows:
        return None
    picked = summary[rows]
    if (picked["nan"] + picked["pos_inf"] + picked["neg_inf"]).any():
        return float("nan")
    return float(np.sqrt(np.square(picked["l2"]).sum()))
