"""A step that no update ends: the script checks its loss and goes on to another batch, or the program is over.

The loss is the last scalar with a history that the loop computed: known from the tape although no backward was given
it, and at op level from the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from misstep.adapters.pytorch import tensors

if TYPE_CHECKING:
    from misstep.adapters.pytorch.seams.steps import StepSeam


def leave(seam: StepSeam, *, ends: bool = False) -> None:
    """Another forward begins, or the program `ends`, without an update: a bad step is told of as it is.

    Several forwards may share an update, so nothing is said of a finite one before the end.
    """
    adapter = seam.adapter
    if ends:
        adapter.tape.pause()
        adapter.tape.prelude.end()
    if not adapter.live or adapter.level == "off" or seam.stepped or adapter.in_backward:
        return
    bad = _bad_loss(seam)
    if not bad and ends:
        adapter.seer.fetch()
        bad = seam.backwards > 0 or not adapter.frame.all_finite
    if not bad:
        return
    if ends and seam.backwards:
        seam.gradient_rows([weight for weight in adapter.all_weights() if weight.grad is not None])
    adapter.listener.before_update(adapter)
    seam.finish(left=True)


def left_behind(seam: StepSeam) -> None:
    """The pass ends in which optimizers have stepped: the loss of one more may have been bad, and left."""
    adapter = seam.adapter
    if adapter.level == "off" or not (seam.backwards or adapter.tape.loss is not None):
        return
    if _bad_loss(seam):
        adapter.listener.before_update(adapter)


def _bad_loss(seam: StepSeam) -> bool:
    """Whether a loss of this step is not finite; one that no backward was given becomes a row here."""
    adapter = seam.adapter
    if seam.losses.bad():
        return True
    if adapter.level == "op":
        return not seam.losses and _last_scalar_is_bad(seam)
    if adapter.tape.loss is None or not tensors.nonfinite([adapter.tape.loss[0]]):
        return False
    loss = adapter.tape.leave()
    assert loss is not None
    adapter.loss_row(loss, seam.losses.add(loss))
    return True


def _last_scalar_is_bad(seam: StepSeam) -> bool:
    """With every operator watched: what the step has come to is the last scalar among its rows."""
    adapter, frame = seam.adapter, seam.adapter.frame
    tensors_of = adapter.catalog.graph.tensors
    scalars = (
        row
        for row in range(len(frame) - 1, -1, -1)
        if frame.count(row) == 1 and tensors_of[frame.tensors[row]].role == "output" and frame.is_float(row)
    )
    last = next(scalars, -1)
    if last < 0 or not frame.nonfinite(last):
        return False
    node = adapter.catalog.node("loss", "loss", "Loss", phase="loss")
    row = frame.alias(adapter.catalog.tensor(node, "loss"), last, frame.inputs_of(last))
    record = frame.summary[frame.same_memory(row)]
    seam.losses.add(torch.tensor(float("nan") if record["nan"] else float("inf")))
    return True
