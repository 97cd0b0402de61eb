"""Metrics of text: BLEU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from misstep.train.metrics.base import Metric, nothing_measured, rearrange_inputs


class BleuScore(Metric):
    """How much of a translation occurs in its references, in runs of one to `n_gram` words (Papineni et al. 2002).

    >>> metric.update([["i", "have", "a", "pen"]], [[["i", "have", "a", "pen"], ["i", "own", "a", "pen"]]])

    `smooth` adds one to every count, so that a short text without a common run of four words is not simply 0.
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        if not isinstance(n_gram, int) or not 1 <= n_gram <= 4:
            raise ValueError(f"n_gram must be 1, 2, 3 or 4, got {n_gram!r}")
        self.n_gram = n_gram
        self.smooth = smooth
        self.clear()

    def clear(self) -> None:
        self._common = np.zeros(self.n_gram)
        self._all = np.zeros(self.n_gram)
        self._candidate_words = 0
        self._reference_words = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        if len(inputs) != 2:
            raise ValueError(f"BleuScore takes the translations and their references, but got {len(inputs)} inputs")
        candidates, references = inputs
        if len(candidates) != len(references):
            raise ValueError(
                f"BleuScore got {len(candidates)} translations and references for {len(references)}; "
                "each translation needs a list of references"
            )
        for candidate, choices in zip(candidates, references):
            self._add(candidate, choices)

    def _add(self, candidate: Sequence[Any], choices: Sequence[Sequence[Any]]) -> None:
        self._candidate_words += len(candidate)
        lengths = [len(reference) for reference in choices]
        self._reference_words += min(lengths, key=lambda length: abs(length - len(candidate)))
        for size in range(1, self.n_gram + 1):
            mine = _runs(candidate, size)
            theirs: Counter[tuple[Any, ...]] = Counter()
            for reference in choices:
                theirs |= _runs(reference, size)
            self._common[size - 1] += (mine & theirs).total()
            self._all[size - 1] += mine.total()

    def eval(self) -> float:
        if not self._candidate_words:
            raise nothing_measured(self)
        common, total = (self._common + 1, self._all + 1) if self.smooth else (self._common, self._all)
        if self._common[0] == 0 or common.min() == 0:
            return 0.0
        precision = float(np.exp(np.log(common / total).mean()))
        if self._candidate_words > self._reference_words:
            return precision
        return precision * float(np.exp(1 - self._reference_words / self._candidate_words))


def _runs(words: Sequence[Any], size: int) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(words[start : start + size]) for start in range(len(words) - size + 1))
