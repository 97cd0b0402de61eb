"""NaN between steps: what an evaluation made is no step's fault, and is told as a hit of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from misstep import kernels
from misstep.adapters.base import Adapter
from misstep.core.address import Address
from misstep.core.stats import TensorStats
from misstep.core.watching.watch import Hit
from misstep.sentences import hits as say

if TYPE_CHECKING:
    from misstep.capture.session import Session

CONDITION = "evaluation_not_finite"
MOST_EVALUATIONS = 20
"""Told of in one run: an evaluation that is bad once mostly stays so."""


def bad_evaluation(session: Session, adapter: Adapter, node: int, tensor: Any) -> Hit:
    """What this node of an evaluation made, after the last finished step."""
    of = session.catalog.graph.nodes[node]
    values = adapter.array(tensor)
    record = kernels.summarize(np.ascontiguousarray(values))
    stats = TensorStats.of(record, dtype=adapter.dtype_name(tensor), shape=values.shape)
    done = session.step - 1
    where = "" if of.source is None else str(of.source)
    return Hit(
        id=session.evaluator.take_hit_id(),
        watchpoint=0,
        address=Address(of.name, "output", step=done, rank=session.rank),
        reason=say.BAD_EVALUATION.of(description=stats.describe(), op=of.type, step=done, place=where),
        severity="error",
        stats=stats,
        condition=CONDITION,
    )
