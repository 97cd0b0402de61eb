"""A process that runs trials of a study, one or several at once, until enough were run.

    threads: one a trial ── ask, run, tell          one more ── beats, sweeps, wishes from outside (stop, prune)

Any number of such processes share a study. Everything that must survive a kill is in the storage before it is acted on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from misstep.errors import TuneError, nearest
from misstep.sentences import tune as sentences
from misstep.sentences.studyfile import AT
from misstep.tuning.prior import of_probe, probes, short
from misstep.tuning.search import make_pruner, make_sampler, suggest, violations
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import Place, place_for
from misstep.tuning.storage.shared import SharedStudy, open_study, told
from misstep.tuning.studyfile.study import Study
from misstep.tuning.trial.run import OUTPUT, Outcome, TrialRun

IDLE_SECONDS = 0.5
MOST_INFEASIBLE = 1000
"""Proposals in a row that break a constraint before the study is given up."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened in a study, for whoever watches."""

    kind: str
    """began, ended, note or stale."""
    number: int = -1
    values: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    text: str = ""


class Worker:
    """Runs trials of a study."""

    def __init__(
        self,
        study: Study,
        *,
        base: str = "missteps",
        storage: str = "",
        trials: int | None = None,
        workers: int | None = None,
        listen: Callable[[News], None] = lambda news: None,
    ) -> None:
        self.study, self.base = study, base
        self.trials = trials or study.trials
        self.workers = workers or study.workers
        self._listen = listen
        self._stopping = ""
        """Why all must end: empty, `interrupted` (at once), or `asked` (no new trials)."""
        self._error: BaseException | None = None
        self._running: dict[int, Any] = {}
        self._to_prune: set[int] = set()
        self._failed_in_a_row = 0
        self._infeasible_in_a_row = 0
        self._changed = threading.Event()
        self.place: Place = place_for(study.name, storage or study.storage, base)
        self.shared = self._open()

    def run(self) -> SharedStudy:
        """Work until enough trials have ended; Ctrl-C ends the running ones, which are then run again next time."""
        begin = time.monotonic()
        threads = [
            threading.Thread(target=self._work, args=(slot, begin), name=f"misstep-worker-{slot}")
            for slot in range(self.workers)
        ]
        beating = threading.Thread(target=self._beat, name="misstep-beat", daemon=True)
        for thread in (*threads, beating):
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(0.2)
        except KeyboardInterrupt:
            self.stop("interrupted")
            for thread in threads:
                thread.join()
            raise
        finally:
            self._stopping = self._stopping or "done"
            self._changed.set()
        if self._error is not None:
            raise self._error
        return self.shared

    def stop(self, why: str = "interrupted") -> None:
        self._stopping = self._stopping or why
        self._changed.set()

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self) -> SharedStudy:
        connection = Connection(self.place)
        study = open_study(
            connection,
            self.study.name,
            directions=self.study.directions,
            sampler=make_sampler(self.study, say=self._note),
            pruner=make_pruner(self.study),
        )
        shared = SharedStudy(connection, study, say=self._note)
        self._set_up(shared)
        return shared

    def _set_up(self, shared: SharedStudy) -> None:
        study = self.study
        facts = {
            "targets": [{"name": one.name, "goal": one.goal} for one in study.targets],
            "parameters": [one.name for one in study.parameters],
            "log": [one.name for one in study.parameters if one.log],
            "wanted": self.trials,
        }

        shared.set_up(facts, study.start, probes(study) if any(one.prior for one in study.parameters) else ())

    # ── working ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _work(self, slot: int, begin: float) -> None:
        try:
            while not self._stopping:
                if self.study.timeout is not None and time.monotonic() - begin > self.study.timeout:
                    self.stop("asked")
                    break
                trial = self.shared.ask(self.trials)
                if trial is not None:
                    self._one(trial, slot)
                elif self._all_ended():
                    break
                else:
                    self._changed.wait(IDLE_SECONDS)  # another worker's trial may yet turn out to be stale
        except BaseException as error:
            self._error = self._error or error
            self.stop("interrupted")

    def _all_ended(self) -> bool:
        budget = self.shared.budget()
        if budget.running or budget.waiting:
            return False
        # A worker killed between ending a stale trial and queueing it again leaves that to us.
        swept, budget = self.shared.sweep(self.study.grace), self.shared.budget()
        return not swept and not budget.waiting and budget.counted >= self.trials

    def _one(self, trial: Any, slot: int) -> None:
        values = suggest(trial, self.study)
        if self._infeasible(trial, values) or not self._may_begin(trial):
            return
        attributes = trial.user_attrs
        probe = "probe" in attributes
        study = short(self.study) if probe else self.study
        run = TrialRun(study, trial.number, values, base=self.base, slot=slot, root=int(attributes.get("root", -1)))
        self.shared.mark(trial.number, run=run.directory.name)
        self._running[trial.number] = trial
        self._listen(News("began", trial.number, values))
        try:
            outcome = run.run(
                report=lambda step, value: self._report(trial, step, value),
                asked_to_stop=lambda: self._wish(trial.number),
            )
        except BaseException:
            if run.process is not None:
                run.process.stop()
            raise
        finally:
            self._running.pop(trial.number, None)
        self._conclude(trial, values, of_probe(outcome, run.follower) if probe else outcome, run)

    def _infeasible(self, trial: Any, values: dict[str, Any]) -> bool:
        broken = violations(self.study, values, before=True)
        if not any(over > 0 for over in broken):
            self._infeasible_in_a_row = 0
            return False
        full = [*broken, *[0.0] * (len(self.study.constraints) - len(broken))]
        self.shared.tell(
            trial.number, "PRUNED", ended="infeasible", constraints=full, **told(sentences.INFEASIBLE.of())
        )
        self._infeasible_in_a_row += 1
        if self._infeasible_in_a_row >= MOST_INFEASIBLE:
            what = sentences.MOSTLY_INFEASIBLE.of(count=MOST_INFEASIBLE)
            raise TuneError(AT.of(place=self.study.where("constraints"), what=what))
        return True

    def _may_begin(self, trial: Any) -> bool:
        """Wait out the pause before a retry; False when all must end meanwhile."""
        while not self._stopping:
            left = float(trial.user_attrs.get("not_before", 0)) - time.time()
            if left <= 0:
                return True
            self._running[trial.number] = trial  # it beats while it waits
            self._changed.wait(min(left, IDLE_SECONDS))
        self._running.pop(trial.number, None)
        self.shared.tell(trial.number, "FAIL", ended="interrupted", **told(sentences.WORKER_STOPPED.of()))
        return False

    def _report(self, trial: Any, step: int, value: float) -> bool:
        trial.report(value, step)
        return self.study.pruner.name != "none" and bool(trial.should_prune())

    def _wish(self, number: int) -> str:
        if self._stopping == "interrupted":
            return "interrupted"
        return "asked" if number in self._to_prune else ""

    def _conclude(self, trial: Any, values: dict[str, Any], outcome: Outcome, run: TrialRun) -> None:
        ended = self.shared.tell(
            trial.number,
            outcome.state,
            outcome.values,
            retry_after=self._retry_after(trial, outcome),
            ended=outcome.ended,
            **told(outcome.why),
            **outcome.facts,
        )
        if not ended:
            self._note(sentences.DROPPED.of(number=trial.number))
            return
        self._listen(News("ended", trial.number, values, outcome))
        if outcome.ended == "no target":
            raise self._never_recorded(outcome, run)
        self._count_failures(outcome, run)

    def _retry_after(self, trial: Any, outcome: Outcome) -> float | None:
        """The pause before a failed trial is run again; None when it is not."""
        attempt = int(trial.user_attrs.get("attempt", 1))
        if outcome.ended != "failed" or attempt > self.study.limits.retries:
            return None
        return self.study.limits.backoff * float(2 ** (attempt - 1))

    def _count_failures(self, outcome: Outcome, run: TrialRun) -> None:
        if outcome.ended != "failed":
            self._failed_in_a_row = 0
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self.study.failures and not any(
            one.state.name == "COMPLETE" for one in self.shared.trials()
        ):
            what = sentences.ALL_FAILED.of(count=self._failed_in_a_row, why=outcome.why, output=run.directory / OUTPUT)
            raise TuneError(AT.of(place=self.study.where("command"), what=what))

    def _never_recorded(self, outcome: Outcome, run: TrialRun) -> TuneError:
        target = next(one for one in self.study.targets if outcome.why.startswith(one.name))
        where = f"{self.study.path or self.study.name}:{target.line}"
        if target.pattern:
            what = sentences.NOTHING_FITS.of(number=run.number, pattern=target.pattern, output=run.directory / OUTPUT)
        else:
            what = sentences.TARGET_NEVER_RECORDED.of(
                name=target.name,
                number=run.number,
                nearest=nearest(target.name, outcome.recorded),
                run=run.directory.name,
            )
        return TuneError(AT.of(place=where, what=what))

    # ── beside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _beat(self) -> None:
        """Signs of life for the running trials; a look for those of dead workers, and for wishes from outside."""
        count = 0
        sweep = min(self.study.heartbeat, 5.0)
        next_beat = time.monotonic() + self.study.heartbeat
        while not self._stopping:
            try:
                for number in self.shared.sweep(self.study.grace):
                    self._listen(News("stale", number))
                    self._changed.set()
                if time.monotonic() >= next_beat:
                    next_beat += self.study.heartbeat
                    count += 1
                    for trial in list(self._running.values()):
                        trial.set_user_attr("beat", count)
                self._hear()
            except Exception as error:
                self._note(f"{type(error).__name__}: {error}")  # the next beat may fare better
            self._changed.clear()
            self._changed.wait(min(sweep, 2.0))

    def _hear(self) -> None:
        wishes = self.shared.study.user_attrs
        if wishes.get("stop"):
            self.stop("interrupted" if wishes.get("stop") == 2 else "asked")
        self._to_prune = set(wishes.get("prune") or ())

    def _note(self, text: str) -> None:
        self._listen(News("note", text=text))
