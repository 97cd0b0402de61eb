"""When to run a step again, and what to say about it.

    gradients ready ─ loss or a gradient is not finite ─► replay under operator capture ─► verdict: operator and line
                                                       └► the batch in halves ─► the guilty samples
    weights moved ─ gradients finite, a weight is not ──► the update alone, again

Nothing of this may reach the user: whatever fails is told as a warning, and the verdict stays as precise as it was.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from misstep.adapters.base import Adapter, TrainingStopped
from misstep.adapters.replaying.capsules import framework_of
from misstep.adapters.replaying.protocol import CapsuleMaker, Replayed, Replayer
from misstep.capture.replay.capsules import capsule_path
from misstep.capture.replay.samples import Guilty, find_guilty
from misstep.capture.step.outcome import Rerun
from misstep.capture.step.verdict import find_verdict
from misstep.core.address import Address
from misstep.core.finding import Finding, Verdict
from misstep.core.levels import Level
from misstep.core.run import Step
from misstep.core.steps import parse_steps
from misstep.core.watching.watch import Hit
from misstep.errors import ReplayError
from misstep.sentences import replay as texts
from misstep.sentences.findings import LOSS_SCALE, OVERFLOWS_OFTEN
from misstep.sentences.hits import SCALER_SKIPS

if TYPE_CHECKING:
    from misstep.capture.session import Session

_SKIPS_EXPLAINED = 3
"""Skipped updates whose overflow is traced to an operator: more would cost a training that overflows often."""
_MOST_TRIES = 3
"""Replays that led to no verdict before misstep gives up."""
_ATTEMPTS_JUDGED = 50
"""Updates, skipped or not, over which the share of skipped ones is taken."""


class Replays:
    """The session's hand on replays."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._rerun: Rerun | None = None
        """Of the step under way, once it was run again."""
        self.playing = False
        """This process runs a step of another run from its capsule."""
        self._chosen = parse_steps(session.settings.capsules)
        self._able: dict[type, bool] = {}
        self._tried = 0
        self._attempts: deque[bool] = deque(maxlen=_ATTEMPTS_JUDGED)
        self._skips_told = 0
        self._share_told = False
        self._shadow_told = False

    def arm(self, adapter: Adapter, level: Level) -> None:
        """Keep what a replay needs: operators and lines come from it below op level, guilty samples at every level."""
        if isinstance(adapter, Replayer):
            adapter.arm_replay(self.playing or (bool(self.session.settings.replay) and level != "off"))

    def going_live(self, adapter: Adapter) -> None:
        """Training begins; with a capsule it begins at the capsule's step."""
        path = self.session.settings.capsule
        if (
            not path
            or self.playing
            or not isinstance(adapter, CapsuleMaker)
            or framework_of(Path(path)) != adapter.name
        ):
            return
        step = adapter.play_capsule(Path(path))
        self.playing = True
        self.session.step = step
        self.session.frame.begin(step)

    # ── moments of a step ─────────────────────────────────────────────────────────────────────────────────────

    def before_update(self, adapter: Adapter) -> None:
        if self.playing and isinstance(adapter, CapsuleMaker):
            exact = adapter.capsule_played()
            self._rerun = Rerun(exact)
            text = texts.FROM_CAPSULE.of(step=self.session.step, exact=exact)
            self._write("replay", text=text, step=self.session.step, exact=exact)
            return
        if self._chosen is not None and any(first <= self.session.step <= last for first, last in self._chosen):
            self._guarded("while keeping a capsule", adapter, self._keep_capsule)
        # Once a step: with several optimizers the second finds the tape at its end.
        if self._rerun is None and adapter.traits.shadowed and self._armed(adapter):
            self._guarded("while running the step uncompiled", adapter, self._shadow_step)
        if self._rerun is not None or not self._wanted(adapter):
            return
        if self.session.captured == "op":
            if self._bad_roles() & {"loss", "grad"}:
                self._guarded("while running the step again", adapter, self._replay_seen_step)
        elif self._bad_roles() & {"loss", "grad"}:
            self._guarded("while running the step again", adapter, self._replay_step)
        elif adapter.traits.hides_nan and self._nan_passed():
            self._guarded("while running the step again", adapter, self._replay_hidden)

    def after_update(self, adapter: Adapter) -> None:
        if self._rerun is not None or self.session.captured == "op" or not self._wanted(adapter):
            return
        bad = self._bad_roles()
        if bad and adapter.traits.seen_too_late:
            self._guarded("while running the step again", adapter, self._replay_step)
        elif bad == {"param"}:
            self._guarded("while running the update again", adapter, self._replay_update)

    def take(self) -> Rerun | None:
        """What running the step again has shown, once the step ends; the next one begins without."""
        rerun, self._rerun = self._rerun, None
        return rerun

    def step_done(self, step: Step) -> Hit | None:
        """A hit when a gradient scaler skips too many updates."""
        if self.playing:
            self.session.end("finished", 0)
            raise TrainingStopped(0)
        if (step.loss_scale is not None and not step.left) or step.overflow:
            self._attempts.append(step.overflow)
            return self._judge_skips(step)
        return None

    def overflow(self, adapter: Adapter) -> dict[str, str]:
        """Which operator overflowed in a step that a gradient scaler skips: facts for its record."""
        if self._skips_told >= _SKIPS_EXPLAINED or not self._armed(adapter):
            return {}
        self._skips_told += 1
        try:
            replayed = adapter.replay()  # type: ignore[attr-defined]
            verdict = self._verdict(replayed)
        except Exception as error:
            return {"replay": f"{type(error).__name__}: {error}"}
        if verdict is None:
            return {}
        source = "" if verdict.source is None else str(verdict.source)
        return {
            "node": verdict.node,
            "op": verdict.op,
            "source": source,
            "phase": verdict.phase,
            "replay": replayed.exact,
        }

    # ── the step ──────────────────────────────────────────────────────────────────────────────────────────────

    def _replay_step(self, adapter: Replayer) -> None:
        self._tried += 1
        replayed = adapter.replay()
        verdict = self._verdict(replayed)
        if verdict is None:
            self._rerun = self._healthy(replayed)
            return
        self._tell(replayed, verdict)
        note = self._find_samples(adapter)
        self._keep_capsule(adapter, replayed)
        self._go_on_with(adapter, replayed, Rerun(replayed.exact, verdict, note))

    def _replay_seen_step(self, adapter: Replayer) -> None:
        """Every operator of this step was seen: a replay only adds who is guilty, and what was done before the step."""
        session = self.session
        head, summary = session.frame.finish()
        seen = find_verdict(session.catalog, session.frame, head, summary, rank=session.rank)
        if seen is None or seen.phase == "input":
            self._replay_step(adapter)
            return
        self._tried += 1
        adapter.replay()
        self._rerun = Rerun("", seen, self._find_samples(adapter))

    def _shadow_step(self, adapter: Replayer) -> None:
        """Compiled code shows no operators: those of this step come from a second, uncompiled run of it."""
        bad = self._bad_roles()
        replayed = adapter.replay()
        if bad and replayed.frame.all_finite:
            self._rerun = self._healthy(replayed)
            return
        session = self.session
        if not self._shadow_told:
            self._shadow_told = True
            self._event(texts.SHADOW.of(exact=replayed.exact, seconds=replayed.seconds), replayed)
        note = ""
        if bad and session.first_verdict is None:
            verdict = self._verdict(replayed)
            if verdict is not None:
                self._tell(replayed, verdict)
                note = self._find_samples(adapter)
                self._keep_capsule(adapter, replayed)
            self._go_on_with(adapter, replayed, Rerun(replayed.exact, verdict, note))
            return
        self._go_on_with(adapter, replayed, Rerun(replayed.exact, None, note))

    def _replay_hidden(self, adapter: Replayer) -> None:
        """A module gave NaN and the loss is finite: a kernel made a number of it on the way."""
        self._tried += 1
        replayed = adapter.replay()
        verdict = self._verdict(replayed)
        if verdict is not None:
            self._tell(replayed, verdict)
            self._go_on_with(adapter, replayed, Rerun(replayed.exact, verdict))

    def _go_on_with(self, adapter: Replayer, replayed: Replayed, rerun: Rerun) -> None:
        """From here on the step under way is the one that was watched closely: its rows are those of the replay."""
        self.session.frame = replayed.frame
        adapter.take_over(replayed)
        self._rerun = rerun

    def _healthy(self, replayed: Replayed) -> Rerun:
        if replayed.shared:
            self._tried = _MOST_TRIES  # from the next step on its weights are bad, and not by its own fault
            self._event(texts.OTHER_RANK.of(), replayed)
            return Rerun(replayed.exact, cleared=True)
        self._event(texts.HEALTHY.of(), replayed)
        return Rerun(texts.NOT_EXACT.of(why=texts.WAS_HEALTHY.of(exact=replayed.exact)))

    def _replay_update(self, adapter: Replayer) -> None:
        self._tried += 1
        replayed = adapter.replay_update()
        verdict = self._verdict(replayed)
        if verdict is None:
            session = self.session
            session.plan.force(session.step + 1, "op")
            self._event(texts.UPDATE_HEALTHY.of(), replayed)
            return
        self._tell(replayed, verdict)
        self._go_on_with(adapter, replayed, Rerun(replayed.exact, verdict))

    def _find_samples(self, adapter: Replayer) -> str:
        """A sentence about the guilty samples; empty when there are none."""
        batch = adapter.batch() if self.session.settings.samples else None
        if batch is None:
            return ""
        began = time.perf_counter()
        guilty = find_guilty(batch.size, adapter.bad_with)
        seconds = time.perf_counter() - began
        facts = {"of": guilty.of, "runs": guilty.runs, "seconds": seconds, "step": self.session.step}
        if not guilty.proven or not guilty.samples or len(guilty.samples) == guilty.of > 1:
            text = texts.NO_SINGLE_SAMPLE.of() if guilty.samples else texts.EVERY_PART_HEALTHY.of()
            self._write("samples", text=text, samples=[], **facts)
            return ""
        note = guilty.sentence(batch.indices, batch.names)
        indices = [batch.indices[one] for one in guilty.samples] if batch.indices else []
        names = [batch.names[one] for one in guilty.samples] if batch.names else []
        self._write("samples", text=note, samples=list(guilty.samples), dataset_indices=indices, names=names, **facts)
        self._keep_samples(adapter, guilty)
        return note

    def _keep_samples(self, adapter: Replayer, guilty: Guilty) -> None:
        """The guilty samples themselves, under `sample.17:input@412`."""
        session = self.session
        batch = adapter.batch()
        if batch is None or session.writer is None:
            return
        for one in guilty.samples:
            node = session.catalog.node(f"sample.{one}", "input", "Sample", phase="input")
            for slot, (_, tensor) in enumerate(batch.tensors):
                values = np.ascontiguousarray(adapter.sample(tensor, one))
                session.catalog.tensor(node, "input", slot)
                address = Address(f"sample.{one}", "input", slot, session.step, session.rank)
                session.writer.tensor(address, values, adapter.dtype_name(tensor), values.shape)  # type: ignore[attr-defined]

    def _keep_capsule(self, adapter: object, replayed: Replayed | None = None) -> None:
        """The step as a file, for `misstep replay`."""
        session = self.session
        if not isinstance(adapter, CapsuleMaker) or session.run_directory is None or not session.settings.capsule_mb:
            return
        path = capsule_path(session.run_directory, session.rank, session.step)
        most = int(session.settings.capsule_mb * 2**20)
        try:
            frame = None if replayed is None else replayed.frame
            capsule = adapter.save_capsule(path, step=session.step, most_bytes=most, frame=frame)
        except (ReplayError, OSError) as error:
            self._write("capsule", text=texts.NO_CAPSULE.of(step=session.step, why=str(error)), step=session.step)
            return
        name = f"{session.run_directory.name}@{session.step}"
        self._write("capsule", text=texts.CAPSULE.of(name=name), step=session.step, bytes=capsule.bytes, path=path.name)

    # ── loss scale ────────────────────────────────────────────────────────────────────────────────────────────

    def _judge_skips(self, step: Step) -> Hit | None:
        """Skipping now and then is how a loss scale finds its size; skipping often is a fault."""
        limit = self.session.settings.skipped_share
        if self._share_told or len(self._attempts) < _ATTEMPTS_JUDGED or not limit:
            return None
        share = sum(self._attempts) / len(self._attempts)
        if share <= limit:
            return None
        self._share_told = True
        said = SCALER_SKIPS.of(share=share, count=len(self._attempts))
        hit = Hit(
            id=self.session.evaluator.take_hit_id(),
            watchpoint=0,
            address=Address("loss", "loss", step=step.number, rank=self.session.rank),
            reason=said,
            condition="loss_scale_skips",
            detail={"share": share, "limit": float(limit)},
        )
        if self.session.writer is not None:
            self.session.writer.hit(hit)
            self.session.writer.finding(
                Finding(
                    rule="loss_scale_skips",
                    title=said,
                    step=step.number,
                    rank=self.session.rank,
                    evidence=(LOSS_SCALE.of(scale=step.loss_scale, step=step.number),) if step.loss_scale else (),
                    advice=OVERFLOWS_OFTEN.of(),
                    command="misstep show last",
                    detail={"share": share, "limit": float(limit)},
                )
            )
            self.session.writer.flush()
        return hit

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _armed(self, adapter: Adapter) -> bool:
        # Once a type: a check against a protocol takes 60 µs.
        able = self._able.get(type(adapter))
        if able is None:
            able = self._able[type(adapter)] = isinstance(adapter, Replayer)
        return able and bool(self.session.settings.replay)

    def _wanted(self, adapter: Adapter) -> bool:
        return (
            self.session.first_verdict is None
            and self._tried < _MOST_TRIES
            and self.session.captured != "off"
            and self._armed(adapter)
        )

    def _bad_roles(self) -> set[str]:
        """The roles of the rows of this step, so far, that are not finite."""
        frame = self.session.frame
        if frame.all_finite:
            return set()
        roles = self.session.catalog.graph.tensors
        bad = [row for row in range(len(frame)) if frame.nonfinite(row)]
        found: set[str] = {roles[frame.tensors[row]].role for row in bad}
        return found & {"loss", "grad", "param"}

    def _nan_passed(self) -> bool:
        """Whether a module of this step gave NaN."""
        frame, tensors = self.session.frame, self.session.catalog.graph.tensors
        rows = np.flatnonzero(frame.summary["nan"][: len(frame)]).tolist()
        return any(tensors[frame.tensors[row]].role == "output" for row in rows)

    def _verdict(self, replayed: Replayed) -> Verdict | None:
        head, summary = replayed.frame.finish()
        return find_verdict(self.session.catalog, replayed.frame, head, summary, rank=self.session.rank)

    def _guarded(self, where: str, adapter: Any, act: Callable[[Any], None]) -> None:
        try:
            act(adapter)
        except TrainingStopped:
            raise
        except ReplayError as error:
            self._write("replay", text=texts.NOT_REPLAYED.of(why=str(error)), step=self.session.step)
        except Exception as error:
            self.session.trouble(where, error)

    def _tell(self, replayed: Replayed, verdict: Verdict) -> None:
        self.session.keeper.settle(verdict, replayed.frame)
        self._event(texts.FOUND.of(exact=replayed.exact, found=verdict.sentence()), replayed)

    def _event(self, text: str, replayed: Replayed) -> None:
        self._write("replay", text=text, step=self.session.step, exact=replayed.exact, seconds=replayed.seconds)

    def _write(self, kind: str, **facts: object) -> None:
        if self.session.writer is not None:
            self.session.writer.event(kind, **facts)
