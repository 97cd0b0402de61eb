"""The hub: every run of a folder, live through its trainees and finished through its directory, behind one name each.

A run's name is looked up in a list the hub itself made, so that nothing a client sends becomes part of a path. Live
facts (phase, hits, watchpoints) come from the trainees, everything recorded from the run directory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from misstep.errors import ControlError, RunError, StaleCommand
from misstep.hub.answers.curves import TAGS
from misstep.hub.answers.held.things import Things
from misstep.hub.answers.hits import stored_hits
from misstep.hub.listing.folder import RunFolder
from misstep.hub.live.events import Bus, Numbered
from misstep.hub.live.hub_file import Cards
from misstep.hub.live.run import LiveRun
from misstep.hub.live.trainees import Trainee, TraineeServer
from misstep.protocol import messages as m
from misstep.protocol.payloads import LabelEdit, RunDetail, RunList
from misstep.protocol.views import HitView, RunBrief, WatchpointView, watchpoint_view
from misstep.protocol.wire import FromTrainee
from misstep.sentences import control as texts
from misstep.sentences.hub import listing as listing_texts
from misstep.store.bundle.write import bundles_of
from misstep.store.labels import read_labels, write_labels
from misstep.store.layout import is_run, rank_paths
from misstep.store.reading.reader import Run
from misstep.store.runs import delete_run

SCAN_SECONDS = 1.0


class Hub:
    """Runs, clients and trainees. Lives on one event loop."""

    def __init__(self, directory: Path | str, token: str, *, things: Sequence[Path] = ()) -> None:
        self.directory = Path(directory)
        self._folder = RunFolder(self.directory)
        self.things = Things(self.directory, things, listing=self._folder.listing)
        """What can be opened besides runs: dumps and checkpoints below the folder, and those given."""
        self.token = token
        self.bus = Bus()
        self.live: dict[str, LiveRun] = {}
        self.trainees = TraineeServer(token, arrived=self._arrived, said=self._said, left=self._left)
        self.http = ""
        self.last_busy = time.monotonic()
        self._shown: dict[str, tuple[int, int]] = {}
        """Of finished runs: (revision, the step shown), moved by `reset`."""
        self._scan: asyncio.Task[None] | None = None
        self._cards = Cards()

    # ── trainees ──

    async def start(self, *, link_host: str = "127.0.0.1", link_port: int = 0, path: Path | None = None) -> str:
        """Listen for trainees, and leave our card in live runs that know no hub."""
        address = await self.trainees.start(link_host, link_port, path=path)
        self._cards.say(link=address, http=self.http, token=self.token)
        if self.directory.is_dir():
            self._cards.leave(self.directory)
        self._scan = asyncio.get_running_loop().create_task(self._scanning())
        return address

    async def stop(self) -> None:
        if self._scan is not None:
            self._scan.cancel()
        await self.trainees.stop()
        self._cards.take_back()

    def _arrived(self, trainee: Trainee) -> bool:
        name = trainee.introduced.run
        run = self.live.get(name)
        if run is None:
            run = self.live[name] = LiveRun(name, trainee.introduced.directory, publish=self.bus.publish)
            if run.directory and is_run(Path(run.directory)):
                self._cards.leave(Path(run.directory))
        return run.joined(trainee)

    def _said(self, trainee: Trainee, words: FromTrainee, data: bytes) -> None:
        self.last_busy = time.monotonic()
        run = self.live.get(trainee.introduced.run)
        if run is not None:
            run.said(trainee, words, data)

    def _left(self, trainee: Trainee, why: str) -> None:
        run = self.live.get(trainee.introduced.run)
        if run is not None:
            run.left(trainee, why)

    async def _scanning(self) -> None:
        """Runs that were started without a hub find our card in their directory and connect."""
        while True:
            for listed in await asyncio.to_thread(self._folder.listing.all):
                summary = listed.summary
                if summary.state in ("starting", "running", "paused") and not self._is_connected(summary.name):
                    self._cards.leave(summary.path)
            await asyncio.sleep(SCAN_SECONDS)

    def _is_connected(self, name: str) -> bool:
        run = self.live.get(name)
        return run is not None and bool(run.ranks)

    # ── runs ──

    def runs(self, newest: int = 0) -> RunList:
        """Every run of the folder, the newest first; a live one as its trainees tell it.

        `newest`: only so many, at once; the total tells how many there are.
        """
        if newest:
            briefs, total = self._folder.newest(newest)
        else:
            briefs = self._folder.briefs()
            total = len(briefs)
        known = {brief.run for brief in briefs}
        merged = [self._merged(brief) for brief in briefs]
        elsewhere = [run.brief() for name, run in list(self.live.items()) if name not in known]
        merged = sorted([*merged, *elsewhere], key=lambda brief: -brief.started)
        return RunList(tuple(merged), max(total, len(merged)), str(self.directory))

    def live_runs(self) -> tuple[RunBrief, ...]:
        """Those with a process behind them: what a client that has just come must know before it asks."""
        return tuple(self._merged(brief) for name in list(self.live) if (brief := self.brief(name)) is not None)

    def brief(self, name: str) -> RunBrief | None:
        """One run's line in the list."""
        known = self._folder.brief(name)
        if known is not None:
            return self._merged(known)
        return self.live[name].brief() if name in self.live else None

    def label(self, name: str, edit: LabelEdit) -> RunBrief:
        """Say something of a run; its line as it is now."""
        path = self.reader(name).path
        labels = read_labels(path).edited(add=edit.add, remove=edit.remove, note=edit.note, pinned=edit.pinned)
        write_labels(path, labels)
        self._folder.forget()
        brief = self.brief(name) or RunBrief(name, "lost", False, 0.0)
        self.bus.publish(m.RunNews(brief))
        return brief

    def remove(self, name: str) -> None:
        """Delete a run of the folder for good. One that is alive, or lies elsewhere, is refused."""
        run = self.reader(name)
        if run.alive or self._is_connected(name):
            raise ControlError(listing_texts.STILL_RUNS.of(run=name), code="not_paused")
        if run.path.parent.absolute() != self.directory.absolute() or run.path.is_symlink():
            raise ControlError(listing_texts.LIES_ELSEWHERE.of(run=name), code="bad_request")
        delete_run(run.path)
        self.live.pop(name, None)
        self._folder.forget()

    def _merged(self, brief: RunBrief) -> RunBrief:
        run = self.live.get(brief.run)
        if run is None or not run.ranks:
            return brief
        told = run.brief()
        told.started, told.command = brief.started, brief.command or told.command
        told.step, told.found, told.found_zh = max(brief.step, told.step), brief.found, brief.found_zh
        told.bad, told.params = brief.bad, brief.params
        told.tags, told.note, told.pinned = brief.tags, brief.note, brief.pinned
        return told

    def reader(self, name: str) -> Run:
        """The run directory of that name, refreshed; RunNotFound for a name that is not in the list."""
        live = self.live.get(name)
        elsewhere = Path(live.directory) if live is not None and live.directory else None
        told = live.graph_rev if live is not None else 0
        return self._folder.open(name, elsewhere=elsewhere, also=self.live, told=told)

    def detail(self, name: str) -> RunDetail:
        run = self.reader(name)
        live = self.live.get(name)
        steps = run.steps()
        brief = self.brief(name)
        end = run.events("end")
        return RunDetail(
            brief=brief or RunBrief(name, run.state, False, run.info.started),
            versions=run.info.versions,
            git=run.info.git,
            settings=run.info.settings,
            ranks=live.rank_views() if live is not None else (),
            watchpoints=self.watchpoints(name),
            tags=tuple(tag for tag in TAGS if any(getattr(step, tag) is not None for step in steps[-50:])),
            first_step=steps[0].number if steps else 0,
            last_step=steps[-1].number if steps else 0,
            stats_steps=_evenly([step.number for step in steps], 10_000),
            tensor_steps=tuple(sorted({stored.address.step or 0 for stored in run.tensors()})),
            graph_rev=_graph_bytes(run),
            seconds=sum(step.seconds for step in steps),
            exit_code=end[-1].facts.get("exit") if end else None,
            findings=len(run.findings),
            records=tuple(path.stem for path in bundles_of(run.path)),
        )

    def state(self, name: str) -> m.State:
        live = self.live.get(name)
        if live is not None and live.ranks:
            return live.state()
        run = self.reader(name)
        first = live.rev if live is not None else 1
        rev, step = self._shown.get(name, (first, run.last_step.number if run.last_step else 0))
        return m.State(name, rev, "ended" if live is not None and live.ended else "offline", step)

    def standing(self, name: str = "") -> list[Numbered]:
        """Where every live run is, or one, as events for a client that has just come."""
        states = [run.state() for run in self.live.values() if run.ranks and name in ("", run.name)]
        for state in states:
            state.seq = self.bus.seq
        return [Numbered(state, time.monotonic()) for state in states]

    def hits(self, name: str, *, since: int = 0) -> list[HitView]:
        """Of the run directory, and those the trainees told us that are not written yet; all, or after an event."""
        live = self.live.get(name)
        told = dict(live.hits) if live is not None else {}
        try:
            for hit in stored_hits(self.reader(name)):
                told.setdefault((hit.rank, hit.id), hit)
        except RunError:
            if live is None:
                raise
        return [hit for hit in told.values() if not since or live is None or live.is_after(hit, since)]

    def watchpoints(self, name: str) -> tuple[WatchpointView, ...]:
        live = self.live.get(name)
        if live is not None and live.watchpoints:
            return tuple(view for _, view in sorted(live.watchpoints.items()))
        counts: dict[int, int] = {}
        run = self.reader(name)
        for hit in run.hits():
            counts[hit.watchpoint] = counts.get(hit.watchpoint, 0) + 1
        return tuple(watchpoint_view(watch, hits=counts.get(watch.id, 0)) for watch in run.watchpoints)

    # ── what clients ask ──

    async def command(self, command: m.Command) -> m.Ack:
        live = self.live.get(command.run)
        if live is not None and live.ranks:
            result = await live.command_all(command)
            return m.Ack(command.id, live.rev, result)
        return self._offline(command)

    def _offline(self, command: m.Command) -> m.Ack:
        """A finished run can be set to a step: what is shown of it then is of that step."""
        run = self.reader(command.run)
        if command.op != "reset":
            why = texts.IS_NOT_CONNECTED if run.alive else texts.HAS_ENDED
            raise ControlError(why.of(run=run.name, op=command.op), code="not_running")
        state = self.state(command.run)
        if command.rev is not None and command.rev != state.rev:
            raise StaleCommand(texts.STALE_RUN.of(now=state.rev, yours=command.rev))
        last = run.last_step.number if run.last_step else 0
        if not 0 <= command.count <= last:
            reason = texts.RUN_HAS_STEPS.of(run=run.name, last=last, step=command.count)
            raise ControlError(reason, code="bad_request")
        self._shown[command.run] = (state.rev + 1, command.count)
        self.bus.publish(self.state(command.run))
        return m.Ack(command.id, state.rev + 1, {"step": command.count})

    async def edit(self, edit: m.WatchEdit) -> m.Ack:
        live = self.live.get(edit.run)
        if live is None or not live.ranks:
            self.reader(edit.run)
            raise ControlError(texts.NOT_LIVE.of(run=edit.run), code="not_running")
        return m.Ack(edit.id, live.rev, await live.edit(edit))


def _graph_bytes(run: Run) -> int:
    """Grows whenever the graph does, and costs no look into it."""
    graph = rank_paths(run.path, min(run.ranks, default=0)).graph
    return graph.stat().st_size if graph.exists() else 0


def _evenly(values: list[int], most: int) -> tuple[int, ...]:
    if len(values) <= most:
        return tuple(values)
    return tuple(values[at] for at in np.unique(np.linspace(0, len(values) - 1, most).astype(int)))
