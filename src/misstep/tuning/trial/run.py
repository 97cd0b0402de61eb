"""One trial from its values to its end: the command under misstep, followed, and ended early when it is hopeless.

values ─► command and environment ─► process ─► journal of its run ─► curves ─► report, judge, measure
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misstep.capture.attach import child_environment
from misstep.errors import TuneError
from misstep.sentences import tune as sentences
from misstep.settings import Settings
from misstep.store.layout import is_run
from misstep.store.runs import new_run_directory
from misstep.store.scratch import remove_scratch
from misstep.tuning.search import violations
from misstep.tuning.storage.places import folder_of
from misstep.tuning.studyfile.command import filled, replaced
from misstep.tuning.studyfile.study import Study
from misstep.tuning.trial.follow import Follower
from misstep.tuning.trial.health import Health, Reason
from misstep.tuning.trial.hyperconfig import CHECKPOINTS_VARIABLE, TRIAL_VARIABLE, VARIABLE
from misstep.tuning.trial.process import TrialProcess
from misstep.tuning.trial.targets import Measurements, Printing, reduced, report_steps

LOOK_SECONDS = 0.2
OUTPUT = "output.txt"
CLOSE_STEPS = "1:4"
"""Steps of a guarded trial whose weights are looked at: enough to tell that none moves."""
LENT = Path(__file__).resolve().parent / "lent"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trial."""

    state: str
    """COMPLETE, PRUNED or FAIL, as Optuna says it."""
    ended: str
    """complete, failed, interrupted, no target, or why it was pruned."""
    why: str = ""
    values: list[float] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    """Kept with the trial: steps, seconds, memory_mb, exit, constraints."""
    recorded: tuple[str, ...] = ()


class TrialRun:
    """A trial on its way."""

    def __init__(
        self, study: Study, number: int, values: dict[str, Any], *, base: str, slot: int = 0, root: int = -1
    ) -> None:
        self.study, self.number, self.values = study, number, values
        self.root = number if root < 0 else root
        """The number under which these values were first tried: its checkpoints are still there."""
        self._base, self._slot = base, slot
        self.directory = new_run_directory(base, f"{study.name}-{number:04d}")
        summary = study.summary_base_dir or str(self.directory / "summary")
        self.summary = Path(summary) / f"train_{self.directory.name}" if study.summary_base_dir else Path(summary)
        self.follower = Follower(self.directory, self.summary, most=study.limits.steps)
        self.process: TrialProcess | None = None
        self._health = Health(study, self.directory)
        pattern = study.targets[0].pattern if len(study.targets) == 1 else ""
        self._printing = Printing(self.directory / OUTPUT, pattern)
        self._reported = 0

    def run(
        self,
        report: Callable[[int, float], bool] = lambda step, value: False,
        asked_to_stop: Callable[[], str] = lambda: "",
    ) -> Outcome:
        """Run it to its end. `report` is given the curve of the only target and says whether to prune; `asked_to_stop`
        is empty, or says why all must end now."""
        command = filled(self.study.command, self.values, optional=self.study.optional)
        try:
            self.process = TrialProcess(command, self.environment(command), self.directory / OUTPUT)
        except OSError as error:
            return Outcome("FAIL", "failed", sentences.CANNOT_START.of(program=command[0], why=error.strerror))
        reason: Reason | None = None
        over = False
        while not self.process.wait(LOOK_SECONDS):
            stop = asked_to_stop()
            if stop:
                self.process.stop()
                if stop == "interrupted":
                    return Outcome("FAIL", "interrupted", sentences.WORKER_STOPPED.of(), facts=self._facts())
                reason = Reason("asked", sentences.BY_HAND.of())
                break
            reason = self._look(report)
            over = self.study.limits.steps is not None and self.follower.steps >= self.study.limits.steps
            if reason is not None or over:
                self.process.stop()
                break
        return self._outcome(reason, report, over=over)

    @property
    def checkpoints(self) -> Path:
        """Where its checkpoints are: the same folder when these values are run again."""
        folder = folder_of(self._base) / f"{self.study.name}-checkpoints" / f"{self.root:04d}"
        return folder.absolute()

    def environment(self, command: tuple[str, ...]) -> dict[str, str]:
        """What the process finds in its environment: its values, its devices, and misstep."""
        level, steps = self.study.level, ""
        if level == "guard" and "dead" in self.study.prune_on:
            level, steps = "module", CLOSE_STEPS  # the guard never looks at weights
        settings = Settings.load(dir=self._base, level=level, steps=steps, name="")
        environment = child_environment(command, settings, {"dir", "level", "steps"}, self.directory)
        path = [*environment["PYTHONPATH"].split(os.pathsep), str(LENT)]
        environment["PYTHONPATH"] = os.pathsep.join(path)
        hyper = {"params": self.values, "summary_dir": str(self.summary), "custom_lineage_data": {}}
        environment[VARIABLE] = json.dumps(hyper)
        environment[TRIAL_VARIABLE] = str(self.number)
        environment[CHECKPOINTS_VARIABLE] = str(self.checkpoints)
        if self.study.limits.cpus:
            environment["OMP_NUM_THREADS"] = str(self.study.limits.cpus)
        if self.study.limits.gpus:
            environment.update(devices(self.study.limits.gpus, self._slot, environment))
        for variable, value in self.study.environment.items():
            environment[variable] = replaced(value, self.values)
        return environment

    def _look(self, report: Callable[[int, float], bool]) -> Reason | None:
        assert self.process is not None
        written, printed = self.follower.look(), self._printing.look()
        if written or printed:
            reason = self._health.judge(self.follower)
            if reason is not None:
                return reason
            if self._report(report):
                return Reason("pruner", sentences.BEHIND.of(step=self._reported))
        return self._overrun()

    def _overrun(self) -> Reason | None:
        assert self.process is not None
        limits = self.study.limits
        if limits.timeout is not None and time.monotonic() - self.process.started > limits.timeout:
            return Reason("timeout", sentences.TOO_LONG.of(seconds=limits.timeout))
        if limits.memory_mb is not None and self.process.memory_now_mb() > limits.memory_mb:
            return Reason("memory", sentences.TOO_LARGE.of(memory=limits.memory_mb))
        return None

    def _report(self, report: Callable[[int, float], bool]) -> bool:
        """Tell the curve of the only target at the steps all trials share; True when the pruner wants an end."""
        if len(self.study.targets) != 1:
            return False
        target = self.study.targets[0]
        points = self._printing.points if target.pattern else self.follower.curve(target.name)
        if not points:
            return False
        for step in report_steps(points[-1][0], self._reported):
            window = [point for point in points if self._reported < point[0] <= step]
            value = reduced(window, "mean" if target.reduce == "mean" else target.reduce)
            self._reported = step
            if value is not None and math.isfinite(value) and report(step, value):
                return True
        return False

    def _outcome(self, reason: Reason | None, report: Callable[[int, float], bool], *, over: bool) -> Outcome:
        assert self.process is not None
        self.follower.finish()
        self._printing.look()
        remove_scratch(self.directory)
        self._report(report)
        facts = self._facts()
        if reason is None and not over:
            reason = self._health.judge(self.follower)
        if reason is not None:
            return Outcome("PRUNED", reason.ended, reason.why, facts=facts)
        if self.process.exit_code != 0 and not over:
            return Outcome("FAIL", "failed", sentences.EXIT_CODE.of(code=self.process.exit_code), facts=facts)
        measured = self._measured()
        values = measured.values(self.study)
        recorded = tuple(measured.recorded())
        missing = [target.name for target, value in zip(self.study.targets, values) if value is None]
        if missing:
            return Outcome(
                "FAIL", "no target", sentences.NEVER_RECORDED.of(name=missing[0]), facts=facts, recorded=recorded
            )
        if any(not math.isfinite(value) for value in values if value is not None):
            return Outcome("PRUNED", "nan", sentences.TARGET_NOT_FINITE.of(), facts=facts)
        return Outcome(
            "COMPLETE", "complete", values=[float(value) for value in values if value is not None], facts=facts
        )

    def _measured(self) -> Measurements:
        assert self.process is not None
        return Measurements(
            self.follower,
            self.directory / OUTPUT,
            seconds=self.process.seconds,
            memory_mb=self.process.memory_mb,
        )

    def _facts(self) -> dict[str, Any]:
        assert self.process is not None
        facts: dict[str, Any] = {
            "steps": self.follower.steps,
            "seconds": round(self.process.seconds, 3),
            "memory_mb": round(self.process.memory_mb, 1),
            "exit": self.process.exit_code,
        }
        if is_run(self.directory):
            facts["run"] = self.directory.name
        if self.study.constraints:
            names = sorted({name for constraint in self.study.constraints for name in constraint.names})
            known = {**self._measured().named(names), **self.values}
            try:
                facts["constraints"] = violations(self.study, known, before=False)
            except TuneError:
                facts["constraints"] = [1.0] * len(self.study.constraints)  # it ended before that was measured
        return facts


def devices(count: int, slot: int, environment: dict[str, str]) -> dict[str, str]:
    """The devices of one of several trials at once: the slot's share of those that are visible."""
    found = {}
    for variable in ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"):
        visible = [one for one in environment.get(variable, "").split(",") if one.strip()]
        mine = visible[slot * count : (slot + 1) * count] or [str(slot * count + at) for at in range(count)]
        found[variable] = ",".join(mine)
    return found
