"""Both networks in lockstep with teacher forcing.

The left network runs once, everything in it written down. The right one runs on the same batch, but each of its layers
is given the left layer's input and hands on the left layer's output, so no error travels: a layer that differs is
wrong by itself, and what arrives at a layer from right-hand code between layers is wrong there. Dropout hands on the
left side's draw. Backward, each layer alone gets the left side's incoming gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from misstep.migration.frameworks.base import Array, Call, Pass
from misstep.migration.lockstep.calls import kind_of, pair_calls, units
from misstep.migration.lockstep.findings import Finding, LayerRow, What, arguments_apart
from misstep.migration.lockstep.judge import Apart, apart, fitting, gradients_apart, same_values
from misstep.migration.pairing import Pairing
from misstep.migration.sources import Batch, Built
from misstep.migration.words import torch_leaf

_DROPOUTS = ("dropout", "alphadropout", "featurealphadropout")


@dataclass(slots=True)
class Lockstep:
    """What one pass in lockstep showed."""

    rows: list[LayerRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    left: Pass | None = None


class Lockstepper:
    """One mode (training or not) of one pair of networks."""

    def __init__(self, left: Built, right: Built, batch: Batch, pairing: Pairing, *, train: bool) -> None:
        self.left, self.right, self.batch, self.train = left, right, batch, train
        self.pairing = pairing
        self.result = Lockstep()
        self.mode = "train" if train else "eval"
        self._right_calls: dict[int, Call] = {}

    def go(self) -> Lockstep:
        """Forward and backward; every wrong layer is in the findings, not only the first."""
        batch = self.batch
        ours = self.left.half.run(
            self.left.model, batch.inputs, train=self.train, loss=self.left.loss, labels=batch.labels, backward=True
        )
        forced, pairs, chosen = self._together(ours)
        self.result.left = ours
        if not forced.error:
            self._after(ours, forced)
        elif not self.result.findings:
            last = forced.calls[-1].path if forced.calls else ""
            self._add(Finding("broken", last, left=forced.error, mode=self.mode))
        for at in chosen:
            self._backward(ours.calls[at], forced.calls[pairs[at]])
        for at in sorted(set(pairs) - set(chosen)):  # layers made of layers: their parts ran, their arguments count
            if pairs[at] < len(forced.calls):
                for one in arguments_apart(ours.calls[at], forced.calls[pairs[at]]):
                    self._add(replace(one, mode=self.mode))
        if not forced.error:
            self._alone(ours, pairs, chosen)
        return self.result

    def _together(self, ours: Pass) -> tuple[Pass, dict[int, int], list[int]]:
        """The right network with its layers forced.

        Calls are paired from a run of its own first. A network that breaks on its own gets further with each round,
        because a layer that is known by then hands on what it should have computed.
        """
        known = self.right.half.run(self.right.model, self.batch.inputs, train=False)
        while True:
            self.result = Lockstep()
            pairs = pair_calls(ours.calls, known.calls, self.pairing.layers)
            chosen = units(ours.calls, pairs)
            forced = self.right.half.run(  # type: ignore[call-arg]
                self.right.model,
                self.batch.inputs,
                train=self.train,
                force=self._force(ours, {pairs[at]: at for at in chosen}),
                draws=ours.draws,
            )
            if len(forced.calls) <= len(known.calls):
                return forced, pairs, [at for at in chosen if pairs[at] < len(forced.calls)]
            known = forced

    def _force(
        self, ours: Pass, back: dict[int, int]
    ) -> Callable[[int, Call, Callable[[Sequence[Array]], list[Array]]], list[Array] | None]:
        def at_a_call(number: int, call: Call, go_on: Callable[[Sequence[Array]], list[Array]]) -> list[Array] | None:
            if number not in back:
                return None
            left = ours.calls[back[number]]
            given = self._inputs(left, call)
            outputs = go_on(given)
            row = LayerRow(left.path, call.path, left.type, mode=self.mode)
            self.result.rows.append(row)
            causes = arguments_apart(left, call)
            if left.random or call.random:
                different = self._drawn(left, given, outputs)
            else:
                different = self._forward(left, outputs, given, row)
            self._name(left, call, causes, different, row)
            return [*left.outputs[: len(outputs)], *outputs[len(left.outputs) :]]

        return at_a_call

    def _inputs(self, left: Call, right: Call) -> list[Array]:
        """The left side's inputs where they fit; what right-hand code made of equal values must equal them."""
        given = list(right.inputs)
        for at, (one, other) in enumerate(zip(left.inputs, right.inputs)):
            if not fitting(one, other):
                if one.dtype.kind == other.dtype.kind:
                    shapes = (str(one.shape), str(other.shape))
                    self._add(Finding("shape", _place(left, right), right.type, "", *shapes, mode=self.mode))
                continue
            if one.dtype.kind == "f" and not same_values(one, other):
                largest = float(np.max(np.abs(one.reshape(other.shape) - other)))
                self._add(Finding("between", _place(left, right), right.type, apart=largest, mode=self.mode))
            given[at] = one.reshape(other.shape)
        return given

    def _forward(self, left: Call, outputs: Sequence[Array], given: Sequence[Array], row: LayerRow) -> Apart | None:
        weights = self._weights(left)
        worst: Apart | None = None
        for one, other in zip(left.outputs, outputs):
            found = apart(left.type, one, other, given, weights)
            row.relative, row.allowed = max(row.relative, found.relative), max(row.allowed, found.allowed)
            if not found.close and (worst is None or found.relative > worst.relative):
                worst = found
        return worst

    def _drawn(self, left: Call, given: Sequence[Array], outputs: Sequence[Array]) -> Apart | None:
        """Two layers that draw cannot be laid over each other; what they do to the elements they keep can."""
        if kind_of(left) not in _DROPOUTS or not outputs or outputs[0].shape != given[0].shape:
            return None
        ours, theirs = (_scale(given[0], one) for one in (left.outputs[0].reshape(given[0].shape), outputs[0]))
        off = abs(ours - theirs) / max(ours, theirs, 1e-9)
        return None if off < 1e-4 else Apart(off, float(abs(ours - theirs)), 1e-4)

    def _name(self, left: Call, right: Call, causes: list[Finding], different: Apart | None, row: LayerRow) -> None:
        largest = different.largest if different is not None else None
        if causes:
            row.close = False
            for one in causes:
                self._add(replace(one, apart=largest, mode=self.mode))
        elif different is not None:
            row.close = False
            what: What = "shape" if different.shapes else "output"
            ours, theirs = different.shapes or ("", "")
            self._add(
                Finding(
                    what,
                    _place(left, right),
                    right.type,
                    left=str(ours),
                    right=str(theirs),
                    apart=largest,
                    allowed=different.allowed,
                    mode=self.mode,
                )
            )

    def _backward(self, left: Call, right: Call) -> None:
        """The layer alone, on the left side's inputs and incoming gradient."""
        row = next((row for row in self.result.rows if row.left == left.path and row.right == right.path), None)
        if row is None:
            return  # the layer itself broke, and that is told
        incoming = next((grad for grad in left.out_grads if grad is not None), None)
        self._statistics(left, right)
        if incoming is None or not row.close or kind_of(left) in _DROPOUTS:
            return
        quiet = left.random or right.random
        given = [
            one.reshape(other.shape) if fitting(one, other) else other for one, other in zip(left.inputs, right.inputs)
        ]
        given += right.inputs[len(given) :]
        mine, ours = self.left.half.layer(
            self.left.model, left.path, left.inputs, like=left, train=self.train, out_grads=left.out_grads, quiet=quiet
        )
        yours, theirs = self.right.half.layer(
            self.right.model, right.path, given, like=right, train=self.train, out_grads=left.out_grads, quiet=quiet
        )
        weights = self._weights(left)
        found: list[Apart] = []
        if quiet:
            found += [apart(left.type, one, other, left.inputs, weights) for one, other in zip(mine, yours)]
        for one, other in zip(ours.inputs, theirs.inputs):
            if one is not None and other is not None:
                found.append(gradients_apart(left.type, one, other, incoming, left.inputs, weights, "input_grad"))
        names = {_below(m.left.name, left.path): _below(m.right.name, right.path) for m in self.pairing.matches}
        for name, one in ours.params.items():
            other = theirs.params.get(names.get(name, "\0"))
            if other is not None:
                found.append(gradients_apart(left.type, one, other, incoming, left.inputs, weights, "grad"))
        row.gradient = max((one.relative for one in found), default=None)
        worst = max((one for one in found if not one.close), key=lambda one: one.relative, default=None)
        if worst is not None:
            row.close = False
            place = _place(left, right)
            self._add(
                Finding("gradient", place, right.type, apart=worst.largest, allowed=worst.allowed, mode=self.mode)
            )

    def _statistics(self, left: Call, right: Call) -> None:
        """Running statistics after a pass in training: the same input must have moved them alike."""
        if not self.train:
            return
        after = {torch_leaf(name): value for name, value in right.buffers_after.items()}
        for name, value in left.buffers_after.items():
            other = after.get(name)
            if other is None or other.size != value.size or value.dtype.kind != "f":
                continue
            found = apart("batchnorm", value, other.reshape(value.shape), left.inputs, (), slack=4.0)
            named = any(one.layer == _place(left, right) and one.what == "argument" for one in self.result.findings)
            if not found.close and not named:
                place = _place(left, right)
                self._add(Finding("statistics", place, right.type, name, apart=found.largest, mode=self.mode))

    def _after(self, ours: Pass, forced: Pass) -> None:
        """What the right side's own code makes of the last layers' outputs."""
        for one, other in zip(ours.outputs, forced.outputs):
            if not fitting(one, other):
                self._add(Finding("shape", "output", "", "", str(one.shape), str(other.shape), mode=self.mode))
            elif one.dtype.kind == "f" and not same_values(one, other):
                largest = float(np.max(np.abs(one.reshape(other.shape) - other)))
                self._add(Finding("after", "output", apart=largest, mode=self.mode))

    def _alone(self, ours: Pass, pairs: dict[int, int], chosen: Sequence[int]) -> None:
        """Layers with weights that ran on one side only."""
        with_weights = {one.left.name.rpartition(".")[0] for one in self.pairing.matches} - {""}
        for at, call in enumerate(ours.calls):
            inside = call.parent
            while inside >= 0 and inside not in chosen:
                inside = ours.calls[inside].parent
            if call.path in with_weights and at not in pairs and inside < 0:
                self._add(Finding("unpaired", call.path, call.type, mode=self.mode))

    def _weights(self, left: Call) -> list[Array]:
        prefix = f"{left.path}." if left.path else ""
        return [
            one.fetch()
            for one in self.pairing.left.weights
            if one.name.startswith(prefix) and one.kind == "param" and one.fetch is not None and len(one.shape) >= 2
        ]

    def _add(self, found: Finding) -> None:
        known = (found.what, found.layer, found.parameter)
        if known not in {(one.what, one.layer, one.parameter) for one in self.result.findings}:
            self.result.findings.append(found)


def _scale(given: Array, out: Array) -> float:
    """What a dropout multiplied the elements it kept with."""
    kept = (np.abs(given) > 1e-6) & (out != 0)
    return float(np.median(out[kept] / given[kept])) if kept.any() else 0.0


def _place(left: Call, right: Call) -> str:
    return left.path if left.path == right.path else f"{left.path} / {right.path}"


def _below(name: str, path: str) -> str:
    return name.removeprefix(f"{path}.") if path else name
