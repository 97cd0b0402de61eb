"""A run with live trainees: its ranks as one thing, with one revision, one phase and one place to send commands to.

With several ranks none pauses alone: see rendezvous.py. What only all ranks together can tell is in
rank_watchpoints.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from misstep.errors import ControlError, StaleCommand
from misstep.hub.live.rank_watchpoints import RankWatch
from misstep.hub.live.ranks import end_of, phase_of, question_of, reason_of
from misstep.hub.live.rendezvous import Meetings
from misstep.hub.live.trainees import Trainee
from misstep.protocol import messages as m
from misstep.protocol.views import ControlPhase, HitView, Number, RankView, Reason, RunBrief, WatchpointView
from misstep.protocol.wire import (
    AskTensor,
    Beat,
    Bye,
    Earliest,
    Edit,
    FromTrainee,
    GraphGrew,
    Hits,
    Note,
    Order,
    Record,
    Seen,
    Stand,
    StepDone,
    WatchChanged,
    Wish,
)
from misstep.sentences import control as texts

HITS_KEPT = 20_000


class LiveRun:
    """One run and its connected ranks. Lives on the event loop."""

    def __init__(self, name: str, directory: str, *, publish: Callable[[m.Event], None]) -> None:
        self.name = name
        self.directory = directory
        self.ranks: dict[int, Trainee] = {}
        self.rev = 1
        self.phase: ControlPhase = "running"
        self.reason: Reason | None = None
        self.hits: dict[tuple[int, int], HitView] = {}
        self._told: dict[tuple[int, int], int] = {}
        """By hit: the number of the event that told it."""
        self.watchpoints: dict[int, WatchpointView] = {}
        self.losses: list[Number | None] = []
        self.steps: dict[int, int] = {}
        self.started = 0.0
        self.command: tuple[str, ...] = ()
        self.host = ""
        self.graph_rev = 0
        self.ended: dict[int, Bye] = {}
        self._publish = publish
        self._seen: tuple[Any, ...] = ()
        self._moved = asyncio.Event()
        """Set, and made anew, whenever something about the ranks has changed."""
        self._meetings = Meetings(self.ranks, step=lambda: self.step, silent=self._silent)
        self._rank_watch = RankWatch()

    # ── trainees come, speak and go ──

    def joined(self, trainee: Trainee) -> bool:
        """Whether this rank must agree with others before it pauses."""
        told = trainee.introduced
        old = self.ranks.get(trainee.rank)
        if old is not None and old is not trainee:
            old.leave("it connected again")
        self.ranks[trainee.rank] = trainee
        self.ended.pop(trainee.rank, None)
        self.started = self.started or told.started
        self.command, self.host = told.command, told.host
        self._rank_watch.grow(told.world_size)
        self.steps[trainee.rank] = told.standing.step
        self.watchpoints = {view.id: view for view in told.watchpoints}
        if self.world_size > 1:
            self.watchpoints.update({view.id: view for view in self._rank_watch.views.values()})
        self._changed()
        return self.world_size > 1

    def left(self, trainee: Trainee, why: str) -> None:
        if self.ranks.get(trainee.rank) is not trainee:
            return
        del self.ranks[trainee.rank]
        self._rank_watch.forget()
        if trainee.rank not in self.ended:
            self._publish(
                m.Alert(
                    "rank_lost",
                    f"rank {trainee.rank} of {self.name}: {why}",
                    self.name,
                    "error",
                    {"rank": trainee.rank},
                )
            )
        self._meetings.count()
        self._changed()

    def said(self, trainee: Trainee, words: FromTrainee, data: bytes) -> None:
        rank = trainee.rank
        if isinstance(words, StepDone):
            self._step(trainee, words)
        elif isinstance(words, Stand):
            trainee.standing = words.standing
            self.steps[rank] = words.standing.step
            if rank == min(self.ranks, default=rank):
                for view in words.watchpoints:
                    if view != self.watchpoints.get(view.id):
                        self._watch_changed("update" if view.id in self.watchpoints else "add", view)
            self._changed()
        elif isinstance(words, Hits):
            for hit in words.hits:
                self._hit(hit)
            trainee.send(Seen(words.serial))
        elif isinstance(words, WatchChanged):
            if rank == min(self.ranks, default=rank):
                self._watch_changed(words.op, words.watchpoint)
        elif isinstance(words, GraphGrew):
            self.graph_rev += 1
            self._publish(m.GraphNews(self.name, rank, words.nodes + words.edges, words.nodes, words.edges))
        elif isinstance(words, Wish):
            wish = words.reason
            self._meetings.want(Reason("other_rank", wish.text, wish.watchpoint, wish.hit, rank, wish.text_zh))
        elif isinstance(words, Earliest):
            self._meetings.answered(rank, words)
        elif isinstance(words, Beat):
            trainee.dropped = words.dropped
        elif isinstance(words, Note):
            self._publish(m.LogLine(self.name, rank, words.level, words.text, text_zh=words.text_zh))
        elif isinstance(words, Bye):
            self.ended[rank] = words

    def _step(self, trainee: Trainee, words: StepDone) -> None:
        rank, name = trainee.rank, self.name
        self.steps[rank] = words.step
        trainee.standing.step = words.step
        self._publish(m.StepNews(name, rank, words.step, loss=words.loss, seconds=words.seconds, epoch=words.epoch))
        curves = {
            "loss": words.loss,
            "learning_rate": words.learning_rate,
            "gradient_norm": words.gradient_norm,
            "seconds": words.seconds,
        }
        for tag, value in curves.items():
            if value is not None:
                self._publish(m.Scalars(name, rank, tag, (words.step,), (value,)))
        if rank == min(self.ranks, default=rank):
            self.losses = [*self.losses[-63:], words.loss]
        for watch, hit in self._rank_watch.report(rank, words):
            self._found(watch, hit)

    def _hit(self, hit: HitView) -> None:
        key = (hit.rank, hit.id)
        if key in self.hits:
            return
        self.hits[key] = hit
        while len(self.hits) > HITS_KEPT:
            oldest = next(iter(self.hits))
            del self.hits[oldest]
            self._told.pop(oldest, None)
        watch = self.watchpoints.get(hit.watchpoint)
        if watch is not None:
            watch.hits += 1
        news = m.HitNews(self.name, hit)
        self._publish(news)
        self._told[key] = news.seq

    def is_after(self, hit: HitView, seq: int) -> bool:
        """Whether a hit was told after this event. One we no longer know the number of counts as one."""
        return self._told.get((hit.rank, hit.id), seq + 1) > seq

    def _watch_changed(self, op: Any, view: WatchpointView) -> None:
        before = self.watchpoints.pop(view.id, None)
        if op != "remove":
            self.watchpoints[view.id] = view
        if before is None or op == "remove" or question_of(before) != question_of(view):
            for hit in self.hits.values():
                if hit.watchpoint == view.id:
                    hit.outdated = True
        self._publish(m.WatchNews(self.name, op, view))

    def _found(self, watch: WatchpointView, hit: HitView) -> None:
        """All ranks together have shown something: the rank it is about records it."""
        self._hit(hit)
        trainee = self.ranks.get(hit.rank)
        if trainee is not None:
            trainee.send(Record(hit))
        if watch.then in ("pause", "stop"):
            self._meetings.want(Reason("across_ranks", hit.reason, watch.id, hit.id, hit.rank, hit.reason_zh))

    # ── all ranks as one ──

    def _changed(self) -> None:
        """Work out phase and revision anew; tell everybody when they changed."""
        standings = [trainee.standing for _, trainee in sorted(self.ranks.items())]
        self.phase = phase_of([standing.phase for standing in standings], ended=bool(self.ended))
        first = standings[0] if standings else None
        place = first.place if first is not None and self.phase == "paused" else None
        paused_at = self.step if self.phase == "paused" else None
        self.reason = reason_of([standing.reason for standing in standings if standing.reason is not None])
        seen = (
            self.phase,
            paused_at,
            None if place is None else (place.node, place.phase, place.when, place.call),
            tuple(sorted(self.ranks)),
            first.goal if first else "",
            first.granularity if first else "",
        )
        if seen != self._seen:
            self._seen = seen
            self.rev += 1
        self._publish(self.state())
        self._publish(m.RunNews(self.brief()))
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def world_size(self) -> int:
        return self._rank_watch.world_size

    @property
    def step(self) -> int:
        return max(self.steps.values(), default=0)

    def state(self) -> m.State:
        standings = [trainee.standing for _, trainee in sorted(self.ranks.items())]
        first = standings[0] if standings else None
        return m.State(
            run=self.name,
            rev=self.rev,
            phase=self.phase,
            step=self.step,
            place=first.place if first is not None else None,
            reason=self.reason,
            ranks=self.rank_views(),
            granularity=first.granularity if first else "module",
            queued=first.queued if first else (),
            goal=first.goal if first else "",
            compiled=first.compiled if first else False,
        )

    def rank_views(self) -> tuple[RankView, ...]:
        views = [
            RankView(
                rank,
                trainee.standing.phase,
                self.steps.get(rank, 0),
                trainee.standing.rev,
                trainee.standing.place,
                trainee.standing.reason,
                trainee.introduced.host,
                trainee.introduced.pid,
                True,
                trainee.dropped,
                trainee.standing.memory_bytes,
                trainee.standing.memory_limit,
                trainee.standing.queued,
            )
            for rank, trainee in self.ranks.items()
        ]
        gone = [
            RankView(rank, "ended" if rank in self.ended else "lost", step, alive=False)
            for rank, step in self.steps.items()
            if rank not in self.ranks
        ]
        return tuple(sorted((*views, *gone), key=lambda view: view.rank))

    def brief(self) -> RunBrief:
        state: Any = "paused" if self.phase == "paused" else "running"
        if self.phase in ("ended", "lost"):
            state = "lost" if self.phase == "lost" else end_of(self.ended)
        return RunBrief(
            run=self.name,
            state=state,
            live=bool(self.ranks),
            started=self.started,
            phase=self.phase,
            step=self.step,
            loss=self.losses[-1] if self.losses else None,
            world_size=self.world_size,
            ranks=tuple(sorted(self.steps)),
            host=self.host,
            command=self.command,
            hits=len(self.hits),
            spark=tuple(self.losses),
        )

    # ── commands ──

    async def command_all(self, command: m.Command) -> dict[str, Any]:
        """Carry a command out on all ranks, or on the one it names."""
        if command.rev is not None and command.rev != self.rev:
            raise StaleCommand(texts.STALE_RUN.of(now=self.rev, yours=command.rev))
        targets = self._targets(command.rank)
        together = len(targets) > 1
        if together and command.op == "pause":
            if self.phase == "paused":
                raise ControlError(texts.ALREADY_PAUSED.of(), code="not_running")
            await self._meetings.meet(Reason("user", texts.ON_REQUEST.of()))
            return {"text": "pausing at the end of the same step on all ranks"}
        if together and command.op == "terminate" and self.phase != "paused":
            # Ended at different steps, one rank would see its peers vanish inside a collective and fail for it.
            await self._meetings.meet(Reason("user", texts.ALL_RANKS_END.of()))
            await self._until(lambda: self.phase in ("paused", "ended", "lost"))
        target = max(self.steps.get(trainee.rank, 0) for trainee in targets) + command.count
        answers = await asyncio.gather(
            *(self._order(trainee, command, until=target if together else None) for trainee in targets),
            return_exceptions=True,
        )
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        if failed:
            raise failed[0]
        return dict(answers[0]) if answers and isinstance(answers[0], dict) else {}

    async def _order(self, trainee: Trainee, command: m.Command, *, until: int | None) -> Any:
        own = msgspec.structs.replace(command, rev=trainee.standing.rev, rank=None)
        if command.op == "step" and until is not None:
            own.count = until - self.steps.get(trainee.rank, 0)
        if command.op == "terminate":
            own.rev = None
        result, _ = await trainee.ask(lambda id: Order(id, own))
        return result

    async def edit(self, edit: m.WatchEdit) -> Any:
        """Change watchpoints on every rank alike; those across ranks are the hub's own."""
        across = self._rank_watch.edit(edit)
        if across is not None:
            self._watch_changed("update", across)
            return msgspec.to_builtins(across)
        targets = self._targets(edit.rank)
        answers = await asyncio.gather(
            *(trainee.ask(lambda id: Edit(id, edit)) for trainee in targets), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        results = [answer[0] for answer in answers if not isinstance(answer, BaseException)]
        if edit.op == "dry_run" and len(results) > 1:
            total = dict(results[0])
            for name in ("hits", "tensors"):
                total[name] = sum(result[name] for result in results)
            return total
        return results[0]

    async def tensor(self, ask: AskTensor, *, rank: int | None) -> tuple[Any, bytes]:
        trainee = self._targets(rank if rank is not None else min(self.ranks, default=0))[0]
        return await trainee.ask(lambda id: msgspec.structs.replace(ask, id=id))

    def _targets(self, rank: int | None) -> list[Trainee]:
        if not self.ranks:
            raise ControlError(texts.NOT_CONNECTED.of(run=self.name), code="not_running")
        if rank is None:
            return [trainee for _, trainee in sorted(self.ranks.items())]
        if rank not in self.ranks:
            raise ControlError(texts.RANK_NOT_CONNECTED.of(rank=rank, ranks=sorted(self.ranks)), code="not_found")
        return [self.ranks[rank]]

    def _silent(self, ranks: list[int]) -> None:
        text = f"ranks {ranks} of {self.name} did not answer; the others pause without them"
        self._publish(m.Alert("rank_silent", text, self.name))

    async def _until(self, holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                await self._moved.wait()
