"""The four stages of a migration: parameters, model, inference, training; it stops at the first that fails.

>>> check(build("a.py:build", "torch"), build("b.py:build", "mindspore"), batch).failed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from misstep.compare.mapfile import NameMap
from misstep.migration.frameworks.base import Array
from misstep.migration.layouts import turned
from misstep.migration.lockstep.findings import (
    Finding,
    LayerRow,
    Stage,
    loss_arguments_apart,
    optimizer_arguments_apart,
)
from misstep.migration.lockstep.forced import Lockstepper
from misstep.migration.pairing import Pairing, Unmatched, pair
from misstep.migration.params import inventory_of
from misstep.migration.sources import Batch, Built

LOSS_RULE = 1e-3
"""Equal within one per mille: the precision guide's rule for losses of two programs."""
UPDATES = 3
"""Steps the optimizers are fed: momentum shows at the second, bias correction at the third."""


@dataclass(slots=True)
class Report:
    """What the check of two networks showed, stage by stage."""

    left: str
    right: str
    stages: list[Stage] = field(default_factory=list)
    pairing: Pairing | None = None
    layers: list[LayerRow] = field(default_factory=list)

    @property
    def failed(self) -> Stage | None:
        return next((stage for stage in self.stages if stage.status == "failed"), None)

    def __bool__(self) -> bool:
        return self.failed is None

    @property
    def findings(self) -> list[Finding]:
        return [one for stage in self.stages for one in stage.findings]


def check(left: Built, right: Built, batch: Batch, *, names: NameMap | None = None, go_on: bool = False) -> Report:
    """Walk the stages; `go_on` also walks those after a failure."""
    report = Report(left.spec, right.spec)
    work = _Check(left, right, batch, report)
    for stage in (work.parameters(names), work.model, work.inference, work.training):
        done = stage if isinstance(stage, Stage) else stage()
        done.status = "failed" if done.findings and done.status != "skipped" else done.status
        report.stages.append(done)
        if done.status == "failed" and (not go_on or done.name == "parameters"):
            break
    return report


class _Check:
    def __init__(self, left: Built, right: Built, batch: Batch, report: Report) -> None:
        self.left, self.right, self.batch, self.report = left, right, batch, report
        self.pairing: Pairing

    def parameters(self, names: NameMap | None) -> Stage:
        """Every parameter has its partner, in shape and in whether it is trained."""
        ours, theirs = inventory_of(self.left), inventory_of(self.right)
        orders = [
            [call.path for call in one.half.run(one.model, self.batch.inputs, train=False).calls]
            for one in (self.left, self.right)
        ]
        self.pairing = self.report.pairing = pair(ours, theirs, names=names, order=(orders[0], orders[1]))
        stage = Stage("parameters", checked=len(self.pairing.matches))
        for match in self.pairing.matches:
            if not match.fits:
                shapes = (str(match.left.shape), str(match.right.shape))
                stage.findings.append(Finding("shape", f"{match.left.name} / {match.right.name}", "", "", *shapes))
            elif match.left.trainable != match.right.trainable and match.left.kind == "param":
                mine, yours = ("trained" if one.trainable else "frozen" for one in (match.left, match.right))
                stage.findings.append(Finding("argument", match.left.name, "", "requires_grad", left=mine, right=yours))
        for alone in (*self.pairing.only_left, *self.pairing.only_right):
            if not alone.expected:
                where = "left" if alone in self.pairing.only_left else "right"
                stage.findings.append(
                    Finding("unpaired", alone.param.name, alone.param.layer, left=where, fix=self._fix(alone))
                )
        return stage

    def _fix(self, alone: Unmatched) -> str:
        """A bias only one side has is an argument of the layer."""
        owner, _, leaf = alone.param.name.rpartition(".")
        if leaf in ("bias", "beta") and owner in {*self.pairing.layers, *self.pairing.layers.values()}:
            return "has_bias=True" if alone in self.pairing.only_left else "has_bias=False"
        return alone.suggestion

    def model(self) -> Stage:
        """The left side's weights in the right network, then every layer in lockstep, evaluating and training."""
        self.right.half.load(self.right.model, self._values())
        stage = Stage("model")
        for train in (False, True):
            found = Lockstepper(self.left, self.right, self.batch, self.pairing, train=train).go()
            self.report.layers += found.rows
            known = {(one.what, one.layer, one.parameter) for one in stage.findings}
            stage.findings += [one for one in found.findings if (one.what, one.layer, one.parameter) not in known]
        stage.checked = len({row.left for row in self.report.layers})
        return stage

    def inference(self) -> Stage:
        """The whole of both networks, nothing replaced."""
        ours = self.left.half.run(self.left.model, self.batch.inputs, train=False)
        theirs = self.right.half.run(self.right.model, self.batch.inputs, train=False)
        stage = Stage("inference", checked=len(ours.outputs))
        if theirs.error:
            stage.findings.append(Finding("broken", "", left=theirs.error, mode="eval"))
        allowed = max(1e-6, 4 * sum(row.allowed for row in self.report.layers if row.mode == "eval"))
        for one, other in zip(ours.outputs, theirs.outputs):
            relative, largest = _relative(one, other.reshape(one.shape))
            if relative > allowed:
                stage.findings.append(Finding("after", "output", apart=largest, allowed=allowed, mode="eval"))
        return stage

    def training(self) -> Stage:
        """Loss, gradients of the whole, and the optimizers fed with the same gradients."""
        stage = Stage("training")
        if self.left.loss is not None and self.right.loss is not None:
            stage.findings += self._loss_arguments()
        stage.findings += self._losses(stage)
        if self.left.optimizer is None or self.right.optimizer is None:
            stage.note = "optimizer"
        else:
            stage.findings += self._updates(stage)
        return stage

    def _losses(self, stage: Stage) -> list[Finding]:
        """Without dropout the whole of a training step can be compared: evaluation mode, gradients on.

        Where a side comes without a loss, a fixed weighted sum of the outputs takes its place on both.
        """
        losses = (self.left.loss, self.right.loss)
        losses = losses if None not in losses else (None, None)
        runs = [
            one.half.run(one.model, self.batch.inputs, train=False, loss=loss, labels=self.batch.labels, backward=True)
            for one, loss in zip((self.left, self.right), losses)
        ]
        found: list[Finding] = []
        if runs[1].error:  # told by the stage before
            return found
        stage.checked += 1
        ours, theirs = runs[0].loss or 0.0, runs[1].loss or 0.0
        if abs(ours - theirs) > LOSS_RULE * max(abs(ours), 1e-12):
            found.append(Finding("loss", "loss", left=f"{ours:.6g}", right=f"{theirs:.6g}", apart=abs(ours - theirs)))
            return found
        largest = max((float(np.max(np.abs(grad))) for grad in runs[0].grads.values()), default=0.0)
        for match in self.pairing.matches:
            one, other = runs[0].grads.get(match.left.name), runs[1].grads.get(match.right.name)
            if one is None or other is None:
                continue
            stage.checked += 1
            relative, off = _relative(turned(one, match.layout, other.shape), other)
            # A gradient that is zero but for rounding has no relative error; against the largest it is nothing.
            if relative > LOSS_RULE and off > 1e-5 * largest:
                found.append(Finding("gradient", match.left.name, match.right.layer, apart=off, mode="whole"))
        return found

    def _loss_arguments(self) -> list[Finding]:
        ours, _ = self.left.half.arguments(self.left.loss)
        theirs, given = self.right.half.arguments(self.right.loss)
        kinds = (type(self.left.loss).__name__, type(self.right.loss).__name__)
        return loss_arguments_apart(*kinds, ours, theirs, given)

    def _updates(self, stage: Stage) -> list[Finding]:
        ours, _ = self.left.half.arguments(self.left.optimizer)
        theirs, given = self.right.half.arguments(self.right.optimizer)
        kinds = (type(self.left.optimizer).__name__, type(self.right.optimizer).__name__)
        causes = optimizer_arguments_apart(*kinds, ours, theirs, given)
        draw = np.random.default_rng(3)
        steps = [
            {
                one.left.name: (draw.standard_normal(one.left.shape) * 0.1).astype(np.float32)
                for one in self.pairing.matches
                if one.left.trainable and one.fits
            }
            for _ in range(UPDATES)
        ]
        turned_steps = [
            {
                one.right.name: turned(step[one.left.name], one.layout, one.right.shape)
                for one in self.pairing.matches
                if one.left.name in step
            }
            for step in steps
        ]
        left = list(self.left.half.updates(self.left.model, self.left.optimizer, steps))
        right = list(self.right.half.updates(self.right.model, self.right.optimizer, turned_steps))
        stage.checked += UPDATES
        before = self._values()
        for number, (one, other) in enumerate(zip(left, right), start=1):
            relative, off = self._step_apart(one, other, before)
            if relative > LOSS_RULE:
                causes = [replace(cause, apart=off) for cause in causes]
                return causes or [
                    Finding("update", f"step {number}", kinds[1], left=kinds[0], right=kinds[1], apart=off)
                ]
        return causes

    def _step_apart(
        self, left: Mapping[str, Array], right: Mapping[str, Array], before: Mapping[str, Array]
    ) -> tuple[float, float]:
        """How far the updates are apart, against how far they moved."""
        moved = total = off = 0.0
        for one in self.pairing.matches:
            if not one.left.trainable:
                continue
            start = before[one.right.name].astype(np.float64)
            ours = turned(left[one.left.name], one.layout, one.right.shape) - start
            theirs = right[one.right.name] - start
            # Over all elements: where a gradient is nearly zero, the place of Adam's epsilon shows, and means nothing.
            moved += float(np.sum(ours**2) + np.sum(theirs**2)) / 2
            total += float(np.sum((ours - theirs) ** 2))
            off = max(off, float(np.max(np.abs(ours - theirs))))
        return (float(np.sqrt(total / moved)) if moved else 0.0), off

    def _values(self) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for one in self.pairing.matches:
            if one.fits and one.left.fetch is not None:
                found[one.right.name] = turned(one.left.fetch(), one.layout, one.right.shape)
        return found


def _relative(left: Array, right: Array) -> tuple[float, float]:
    """‖a−b‖/‖a‖ and the largest difference."""
    one, other = left.astype(np.float64), right.astype(np.float64)
    size = float(np.linalg.norm(one))
    off = float(np.linalg.norm(one - other))
    return (off / size if size else off), float(np.max(np.abs(one - other), initial=0.0))
