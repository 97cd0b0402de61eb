"""Real arrays as evidence, and steps made of them: what capture hands to the evaluator, computed plainly in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from misstep.core.address import Address
from misstep.core.stats import DTYPE_CODES, HEAD, SUMMARY, TensorStats


def summary_of(values: Any) -> np.ndarray:
    """A SUMMARY record of an array, by the definitions in core/stats.py."""
    array = np.asarray(values, dtype=np.float64).ravel()
    finite = array[np.isfinite(array)]
    record = np.zeros(1, dtype=SUMMARY)
    record["count"] = array.size
    record["nan"] = np.isnan(array).sum()
    record["pos_inf"] = (array == np.inf).sum()
    record["neg_inf"] = (array == -np.inf).sum()
    record["zeros"] = (array == 0).sum()
    record["negatives"] = (array < 0).sum()
    record["positives"] = (array > 0).sum()
    for name in ("min", "max", "mean", "abs_mean", "std"):
        record[name] = np.nan
    if finite.size:
        record["min"], record["max"], record["mean"] = finite.min(), finite.max(), finite.mean()
        record["abs_mean"], record["std"] = np.abs(finite).mean(), finite.std()
        record["l2"] = np.sqrt((finite**2).sum())
    return record


@dataclass
class Tensor:
    """A tensor with its previous value; `kept` is False when only its statistics are known."""

    now: Any
    before: Any = None
    step: int = 5
    kept: bool = True

    @property
    def stats(self) -> TensorStats:
        array = np.asarray(self.now)
        return TensorStats.of(summary_of(array)[0], dtype=str(array.dtype), shape=array.shape)

    def previous_change(self, rtol: float, atol: float) -> Any | None:
        if self.before is None:
            return None
        now, before = np.asarray(self.now, dtype=float), np.asarray(self.before, dtype=float)
        if not now.size:
            return dict.fromkeys(("count", "mean_abs", "max_abs", "mean_abs_before", "within"), 0)
        difference = np.abs(now - before)
        return {
            "count": now.size,
            "mean_abs": difference.mean(),
            "max_abs": difference.max(),
            "mean_abs_before": np.abs(before).mean(),
            "within": int((difference <= atol + rtol * np.abs(before)).sum()),
        }

    def count_within(self, low: float, high: float) -> int | None:
        if not self.kept:
            return None
        now = np.asarray(self.now)
        return int(((now >= low) & (now <= high)).sum())


@dataclass
class StepRows:
    """Addressed tensors as the rows of a step."""

    tensors: Sequence[tuple[str, Tensor]]
    types: Sequence[str] = ()
    flags: Sequence[int] = ()
    step: int = 5

    @property
    def head(self) -> np.ndarray:
        head = np.zeros(len(self.tensors), dtype=HEAD)
        head["tensor"] = np.arange(len(self.tensors))
        head["order"] = np.arange(len(self.tensors))
        head["step"] = self.step
        head["dtype"] = DTYPE_CODES["float32"]
        if self.flags:
            head["flags"] = self.flags
        return head

    @property
    def summary(self) -> np.ndarray:
        return np.concatenate([summary_of(tensor.now) for _, tensor in self.tensors])

    def evidence(self, row: int) -> Tensor:
        return self.tensors[row][1]

    def tell(self, evaluator: Any) -> Any:
        """Name the tensors to an evaluator."""
        types = self.types or [""] * len(self.tensors)
        for index, ((address, _), node_type) in enumerate(zip(self.tensors, types)):
            evaluator.tensor_added(index, Address.parse(address), node_type)
        return evaluator

    def hits(self, evaluator: Any, *, rank: int = 0) -> list[Any]:
        return list(self.tell(evaluator).evaluate(self.step, rank, self.head, self.summary, self.evidence))
