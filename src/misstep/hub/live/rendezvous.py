"""How several ranks come to stand at the end of the same step: none alone, none inside a collective.

hub ── Gather ──► every rank    hold at your next boundary
rank ── Earliest ──► hub        the step whose end that is
hub ── Meet(latest) ──► every   go on to the end of this one
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from misstep.hub.live.trainees import Trainee
from misstep.protocol.views import Reason
from misstep.protocol.wire import Earliest, Gather, Meet

MEETING_SECONDS = 10.0


class Meetings:
    """The meetings of one run's ranks, one at a time. Lives on the event loop."""

    def __init__(
        self, ranks: Mapping[int, Trainee], *, step: Callable[[], int], silent: Callable[[list[int]], None]
    ) -> None:
        self._ranks = ranks
        self._step = step
        """Where the run is now."""
        self._silent = silent
        """Told which ranks did not answer."""
        self._number = 0
        self._earliest: dict[int, int] = {}
        self._all_answered: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    def want(self, reason: Reason) -> None:
        """Arrange a meeting, unless one is being arranged."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self.meet(reason))

    async def meet(self, reason: Reason) -> None:
        """Gather, then name the step; whatever happens, nobody is left holding."""
        if self._all_answered is not None:
            await self._all_answered.wait()  # a meeting is being arranged already; its step will do
            return
        self._number += 1
        self._earliest = {}
        self._all_answered = asyncio.Event()
        for trainee in self._ranks.values():
            trainee.send(Gather(self._number))
        try:
            await asyncio.wait_for(self._all_answered.wait(), MEETING_SECONDS)
        except TimeoutError:
            self._silent(sorted(set(self._ranks) - set(self._earliest)))
        finally:
            self._all_answered.set()
            self._all_answered = None
            latest = max(self._earliest.values(), default=self._step() + 1)
            for trainee in self._ranks.values():
                trainee.send(Meet(self._number, latest, reason))

    def answered(self, rank: int, words: Earliest) -> None:
        if words.meeting == self._number:
            self._earliest[rank] = words.step
            self.count()

    def count(self) -> None:
        """Whether everybody who is still there has answered."""
        if self._all_answered is not None and set(self._earliest) >= set(self._ranks):
            self._all_answered.set()
