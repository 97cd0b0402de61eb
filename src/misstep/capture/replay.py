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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from misstep.adapters.base import Adapter, Level, TrainingStopped
from misstep.adapters.capsules import framework_of
from misstep.adapters.replaying import CapsuleMaker, Replayed, Replayer
from misstep.capture.capsule import capsule_path
from misstep.capture.plan import parse_steps
from misstep.capture.samples import Guilty, find_guilty
from misstep.capture.verdict import find_verdict
from misstep.core.address import Address
from misstep.core.finding import Finding, Verdict
from misstep.core.run import Step
from misstep.core.watch import Hit
from misstep.errors import ReplayError

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
        self.exact = ""
        """Of the replay of the step under way; empty when there was none."""
        self.note = ""
        self.cleared = False
        """The replay was healthy: what is bad here came from another rank."""
        self.playing = False
        """This process runs a step of another run from its capsule."""
        self._chosen = parse_steps(session.settings.capsules)
        self._able: dict[type, bool] = {}
        self._tried = 0
        self._attempts: deque[bool] = deque(maxlen=_ATTEMPTS_JUDGED)
        self._skips_told = 0
        self._share_told = False

    def arm(self, adapter: Adapter, level: Level) -> None:
        """Keep what a replay needs, at the levels that would gain from one."""
        if isinstance(adapter, Replayer):
            adapter.arm_replay(self.playing or (bool(self.session.settings.replay) and level in ("guard", "module")))

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
            self.exact = adapter.capsule_played()
            text = f"step {self.session.step} was run again from its capsule: {self.exact}"
            self._write("replay", text=text, step=self.session.step, exact=self.exact)
            return
        if self._chosen is not None and any(first <= self.session.step <= last for first, last in self._chosen):
            self._guarded("while keeping a capsule", adapter, self._keep_capsule)
        # Once a step: with several optimizers the second finds the tape at its end.
        if self.exact or not self._wanted(adapter):
            return
        if self._bad_roles() & {"loss", "grad"}:
            self._guarded("while running the step again", adapter, self._replay_step)
        elif getattr(adapter, "hides_nan", False) and self._nan_passed():
            self._guarded("while running the step again", adapter, self._replay_hidden)

    def after_update(self, adapter: Adapter) -> None:
        if not self._wanted(adapter) or self.exact:
            return
        bad = self._bad_roles()
        if bad and getattr(adapter, "seen_too_late", False):
            self._guarded("while running the step again", adapter, self._replay_step)
        elif bad == {"param"}:
            self._guarded("while running the update again", adapter, self._replay_update)

    def step_done(self, step: Step) -> Hit | None:
        """Forget the step; a hit when a gradient scaler skips too many updates."""
        if self.playing:
            self.session.end("finished", 0)
            raise TrainingStopped(0)
        self.exact = self.note = ""
        self.cleared = False
        if step.loss_scale is not None or step.overflow:
            self._attempts.append(step.overflow)
            return self._judge_skips(step)
        return None

    def complete(self, verdict: Verdict | None) -> Verdict | None:
        """The verdict on the step, with what the replay knows of it."""
        if verdict is None or not self.exact:
            return verdict
        if self.cleared:
            return None
        return replace(verdict, exact=self.exact, note="; ".join(filter(None, (verdict.note, self.note))))

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
        self.exact = replayed.exact
        if verdict is None:
            self._healthy(replayed)
            return
        self._tell(replayed, verdict)
        self._find_samples(adapter)
        self._keep_capsule(adapter, replayed)
        adapter.take_over(replayed)

    def _replay_hidden(self, adapter: Replayer) -> None:
        """A module gave NaN and the loss is finite: a kernel made a number of it on the way."""
        self._tried += 1
        replayed = adapter.replay()
        verdict = self._verdict(replayed)
        if verdict is not None:
            self.exact = replayed.exact
            self._tell(replayed, verdict)
            adapter.take_over(replayed)

    def _healthy(self, replayed: Replayed) -> None:
        if replayed.shared:
            self.cleared = True
            self._tried = _MOST_TRIES  # from the next step on its weights are bad, and not by its own fault
            self._event("this rank's own gradients were finite; the bad value came from another rank", replayed)
        else:
            self.exact = f"not exact: the replay was healthy ({replayed.exact})"
            self._event("the step came out healthy when it was run again", replayed)

    def _replay_update(self, adapter: Replayer) -> None:
        self._tried += 1
        replayed = adapter.replay_update()
        verdict = self._verdict(replayed)
        if verdict is None:
            session = self.session
            session.plan.force(session.step + 1, "op")
            self._event("the update could not be made to fail again; the next step is watched at op level", replayed)
            return
        self.exact = replayed.exact
        self._tell(replayed, verdict)
        adapter.take_over(replayed)

    def _find_samples(self, adapter: Replayer) -> None:
        batch = adapter.batch() if self.session.settings.samples else None
        if batch is None:
            return
        began = time.perf_counter()
        guilty = find_guilty(batch.size, adapter.bad_with)
        seconds = time.perf_counter() - began
        facts = {"of": guilty.of, "runs": guilty.runs, "seconds": seconds, "step": self.session.step}
        if not guilty.proven or not guilty.samples or len(guilty.samples) == guilty.of > 1:
            text = (
                "no single sample of the batch is to blame" if guilty.samples else "every part of the batch is healthy"
            )
            self._write("samples", text=text, samples=[], **facts)
            return
        self.note = guilty.sentence(batch.indices, batch.names)
        indices = [batch.indices[one] for one in guilty.samples] if batch.indices else []
        names = [batch.names[one] for one in guilty.samples] if batch.names else []
        self._write(
            "samples", text=self.note, samples=list(guilty.samples), dataset_indices=indices, names=names, **facts
        )
        self._keep_samples(adapter, guilty)

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
            self._write("capsule", text=f"no capsule of step {session.step}: {error}", step=session.step)
            return
        name = f"{session.run_directory.name}@{session.step}"
        self._write("capsule", text=f"misstep replay {name}", step=session.step, bytes=capsule.bytes, path=path.name)

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
        said = f"the gradient scaler skipped {share:.0%} of the last {len(self._attempts)} updates"
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
                    evidence=(f"loss scale {step.loss_scale:g} at step {step.number}",) if step.loss_scale else (),
                    advice="gradients overflow in half precision more often than a loss scale can mend: look at the"
                    " operator named in the skipped steps, lower the learning rate, or train in bfloat16",
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
            and self.session.captured in ("guard", "module")
            and self._armed(adapter)
        )

    def _bad_roles(self) -> set[str]:
        """The roles of the rows of this step, so far, that are not finite."""
        frame = self.session.frame
        summary = frame.summary[: len(frame)]
        counts = [summary[name] for name in ("nan", "pos_inf", "neg_inf")]
        if not any(count.any() for count in counts):
            return set()
        roles = self.session.catalog.graph.tensors
        bad = [row for row in np.flatnonzero(sum(counts)).tolist() if frame.nonfinite(row)]
        return {roles[frame.tensors[row]].role for row in bad} & {"loss", "grad", "param"}

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
            self.exact = ""
            self._write("replay", text=f"the step was not run again: {error}", step=self.session.step)
        except Exception as error:
            self.exact = ""
            self.session.trouble(where, error)

    def _tell(self, replayed: Replayed, verdict: Verdict) -> None:
        self.session.keepsakes.settle(verdict, replayed.frame)
        self._event(f"the step was run again ({replayed.exact}): {verdict.sentence()}", replayed)

    def _event(self, text: str, replayed: Replayed) -> None:
        self._write("replay", text=text, step=self.session.step, exact=replayed.exact, seconds=replayed.seconds)

    def _write(self, kind: str, **facts: object) -> None:
        if self.session.writer is not None:
            self.session.writer.event(kind, **facts)
