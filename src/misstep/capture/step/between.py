"""NaN between steps: what an evaluation made is no step's fault, and is told as a hit of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from misstep import kernels
from misstep.adapters.base import Adapter
from misstep.capture.step.record import write_news
from misstep.core.address import Address
from misstep.core.stats import TensorStats
from misstep.core.watching.watch import Hit
from misstep.sentences import hits as say

if TYPE_CHECKING:
    from misstep.capture.session import Session

CONDITION = "evaluation_not_finite"
_MOST = 20
"""Told of in one run: an evaluation that is bad once mostly stays so."""


class Between:
    """What is told of the time between steps."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._told = 0

    def evaluated(self, adapter: Adapter, node: int, tensor: Any) -> None:
        """This node of an evaluation made a NaN of finite inputs; after a verdict that is no news."""
        session = self._session
        if session.writer is None or session.first_verdict is not None or self._told == _MOST:
            return
        self._told += 1
        write_news(session.writer, session.catalog)
        session.writer.hit(self._hit(adapter, node, tensor))
        session.writer.flush()

    def _hit(self, adapter: Adapter, node: int, tensor: Any) -> Hit:
        session = self._session
        of = session.catalog.graph.nodes[node]
        values = adapter.array(tensor)
        record = kernels.summarize(np.ascontiguousarray(values))
        stats = TensorStats.of(record, dtype=adapter.dtype_name(tensor), shape=values.shape)
        done = session.step - 1
        place = "" if of.source is None else str(of.source)
        return Hit(
            id=session.evaluator.take_hit_id(),
            watchpoint=0,
            address=Address(of.name, "output", step=done, rank=session.rank),
            reason=say.BAD_EVALUATION.of(description=stats.describe(), op=of.type, step=done, place=place),
            severity="error",
            stats=stats,
            condition=CONDITION,
        )
