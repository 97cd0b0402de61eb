"""The data loaders of one training process, and what has come from them since it was last asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from misstep.adapters.timing.lanes import Lanes
from misstep.adapters.timing.stages import Stages, merged


class OfLoader(Lanes):
    """Lanes that know whose they are."""

    number = 0


class Loaders:
    def __init__(self) -> None:
        self.made_here: list[bytes] = []
        """Records of batches made on the training thread."""
        self._facts: list[dict[str, Any]] = []
        self._told = 0
        self.changes: list[dict[str, Any]] = []
        """What was changed on trial, and nobody was told of."""
        self._lanes: list[OfLoader] = []
        self._stages: dict[tuple[int, int], dict[str, Any]] = {}
        self._news = False

    def met(self, facts: dict[str, Any]) -> int:
        """A data loader is used for the first time; its number."""
        self._facts.append({"loader": len(self._facts), **facts})
        return len(self._facts) - 1

    def changed(self, **facts: Any) -> None:
        """Something was carried out that is being tried."""
        self.changes.append(facts)

    def known(self) -> list[dict[str, Any]]:
        """The loaders met so far."""
        return self._facts

    def new_facts(self) -> list[dict[str, Any]]:
        """Loaders nobody was told of."""
        new, self._told = self._facts[self._told :], len(self._facts)
        return new

    def lanes(self, number: int, workers: int, *, named: bool) -> OfLoader:
        """Memory for new workers; those of the loader's epoch before are gone."""
        self._gone(number)
        lanes = OfLoader(workers, named=named)
        lanes.number = number
        self._lanes.append(lanes)
        return lanes

    def _gone(self, number: int) -> None:
        for lanes in [one for one in self._lanes if one.number == number]:
            self.made_here.extend(lanes.drain())
            self._read_texts(lanes)
            lanes.close()
            self._lanes.remove(lanes)

    def records(self) -> Iterator[bytes]:
        """Every batch made since the last time, here and by workers."""
        made, self.made_here[:] = self.made_here[:], []
        yield from made
        for lanes in self._lanes:
            yield from lanes.drain()

    def stages_here(self, stages: Stages) -> None:
        self._stages[-1, -1] = stages.plain()
        self._news = True

    def _read_texts(self, lanes: OfLoader) -> None:
        for place, text in enumerate(lanes.texts()):
            try:
                self._stages[lanes.number, place] = json.loads(text)
                self._news = True
            except ValueError:
                pass  # caught in the middle of being written; the next look finds it whole

    def stages(self) -> dict[str, Any] | None:
        """What samples are made of, when there is news."""
        for lanes in self._lanes:
            self._read_texts(lanes)
        if not self._news:
            return None
        self._news = False
        return merged(list(self._stages.values()))

    def close(self) -> None:
        for lanes in self._lanes:
            lanes.close()
