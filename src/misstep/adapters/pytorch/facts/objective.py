"""How the loss was made: the known loss functions in it, what goes into each, and shapes that were broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from misstep.adapters.pytorch.facts import graph
from misstep.adapters.pytorch.facts.values import look_at, saved, spread
from misstep.core.facts import Objective, TensorLook, Term

Name = Callable[[torch.Tensor], str]

_LOSSES = {
    "nllloss": "nll",
    "nllloss2d": "nll",
    "nlllossnd": "nll",
    "binarycrossentropywithlogits": "bce_logits",
    "binarycrossentropy": "bce",
    "mseloss": "mse",
    "l1loss": "l1",
    "smoothl1loss": "huber",
    "huberloss": "huber",
    "kldiv": "kl",
}
_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}
_AGAINST_TARGET = frozenset({"sub", "rsub", "mseloss", "l1loss", "smoothl1loss", "huberloss"})
"""Operators in which a prediction meets its target. A product with a matrix of constants is a mask, and meant."""
_ONE = 1e-3
"""How far the sum of a row of probabilities may be from 1."""


def objective_of(
    loss: torch.Tensor, found: graph.Walk, name: Name, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
) -> Objective:
    """Of the loss given to backward; `inputs` and `outputs` are those of the network."""
    head = graph.head(found)
    batch = next((one.shape[0] for one in inputs if one.dim() > 0), 0)
    terms = [_term(node, found, name, batch) for node in head if graph.kind_of(node) in _LOSSES][:4]
    if not terms:
        terms = [_by_hand(node, found, name, batch) for node in head if graph.kind_of(node) == "logsoftmax"][:2]
    value = float(loss.detach().float().mean())
    output = next((one for one in outputs if one.requires_grad), None)
    shifted, copied = _against_inputs(inputs, _targets(head))
    return Objective(
        value=value,
        leaf=loss.grad_fn is None,
        reached=len(found.weights),
        terms=tuple(terms),
        broadcast=tuple(_broadcasts(head, batch)),
        complete=found.complete,
        shifted=shifted,
        copied=copied,
        output=None if output is None else look_at(output),
        output_spread=None if output is None else spread(output),
    )


def _term(node: Any, found: graph.Walk, name: Name, batch: int) -> Term:
    kind = _LOSSES[graph.kind_of(node)]
    given, target = saved(node, "self"), saved(node, "target")
    chain, weight = graph.below(node, found)
    names = graph.names_of(chain)
    log_rows: bool | None = None
    dim = _dim(chain[0]) if chain and names[0] in ("logsoftmax", "softmax") else None
    shape = graph.shape_of(chain[0]) if chain else None
    if kind == "nll":
        if names[:1] == ["logsoftmax"]:
            kind, chain, names = "cross_entropy", chain[1:], names[1:]
        elif given is not None:
            log_rows = _log_rows(given)
    prediction = _prediction(kind, given, chain)
    classes = given.shape[1] if given is not None and given.dim() > 1 and kind in ("cross_entropy", "nll") else None
    ignore = getattr(node, "_saved_ignore_index", None)
    return Term(
        kind=kind,
        above=tuple(graph.above(node, found)),
        below=tuple(graph.changing(names)),
        layer="" if weight is None else name(weight),
        reduction=_REDUCTIONS.get(getattr(node, "_saved_reduction", -1), ""),
        prediction=None if prediction is None else look_at(prediction),
        target=None if target is None else look_at(target),
        classes=classes,
        top_target=None if target is None else _top(target, ignore),
        top_prediction=_top_class(given) if classes and given is not None else None,
        ignored=_share(target, ignore) if classes and target is not None else None,
        rows_sum_to_one=prediction is not None and _is_distribution(prediction),
        log_rows=log_rows,
        spread=None if given is None else spread(_probabilities(kind, given)),
        softmax_dim=dim,
        batch_softmax=_over_batch(dim, shape, batch, classes),
        weighted=getattr(node, "_saved_weight", None) is not None,
    )


def _by_hand(node: Any, found: graph.Walk, name: Name, batch: int) -> Term:
    """Cross entropy against probabilities, or written out: it has a log-softmax and no function of its own."""
    chain, weight = graph.below(node, found)
    given = saved(node, "result")
    dim, shape = _dim(node), graph.shape_of(node)
    names = graph.names_of(chain)
    prediction = saved(chain[0], "result") if names[:1] == ["softmax"] else None
    return Term(
        kind="log_softmax",
        above=tuple(graph.above(node, found)),
        below=tuple(graph.changing(names)),
        layer="" if weight is None else name(weight),
        classes=given.shape[-1] if given is not None and given.dim() > 1 else None,
        top_prediction=None if given is None else _top_class(given),
        rows_sum_to_one=prediction is not None and _is_distribution(prediction),
        spread=None if given is None else spread(given.exp()),
        softmax_dim=dim,
        batch_softmax=_over_batch(dim, shape, batch, shape[-1] if shape else None),
    )


def _prediction(kind: str, given: torch.Tensor | None, chain: list[Any]) -> torch.Tensor | None:
    """What the user gave to the loss function: cross entropy keeps only the logarithm it made of it."""
    if kind != "cross_entropy":
        return given
    return saved(chain[0], "result") if chain else None


def _probabilities(kind: str, given: torch.Tensor) -> torch.Tensor:
    values = given.detach().float()
    if kind in ("cross_entropy", "nll"):
        return values.clamp(max=0).exp()
    return values.sigmoid() if kind == "bce_logits" else values


def _is_distribution(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2 or tensor.shape[1] < 2 or tensor.shape[0] < 4:
        return False
    values = tensor.detach()[:256].float()
    return bool((values >= 0).all()) and bool(((values.sum(1) - 1).abs() < _ONE).all())


def _log_rows(given: torch.Tensor) -> bool:
    values = given.detach()[:256].float()
    return bool((values <= _ONE).all()) and bool(
        ((values.exp().sum(1 if values.dim() > 1 else 0) - 1).abs() < 0.01).all()
    )


def _top(target: torch.Tensor, ignore: Any) -> float | None:
    """Share of the most frequent value of whole numbers."""
    values = target.detach().reshape(-1)[:65536]
    if values.is_floating_point():
        if not bool(((values == 0) | (values == 1)).all()) or (target.dim() > 1 and target.shape[-1] > 1):
            return None
        values = values.long()
    if isinstance(ignore, int):
        values = values[values != ignore]
    if values.numel() < 8:
        return None
    return float(torch.unique(values, return_counts=True)[1].max()) / values.numel()


def _share(target: torch.Tensor, value: Any) -> float | None:
    return None if not isinstance(value, int) else float((target.detach() == value).float().mean())


def _top_class(given: torch.Tensor) -> float | None:
    values = given.detach()
    if values.dim() < 2 or values.shape[0] < 8:
        return None
    classes = values.argmax(1).reshape(-1)
    return float(torch.bincount(classes).max()) / classes.numel()


def _dim(node: Any) -> int | None:
    dim = getattr(node, "_saved_dim", None)
    if not isinstance(dim, int):
        return None
    return dim - (1 << 64) if dim >= 1 << 63 else dim


def _over_batch(dim: int | None, shape: tuple[int, ...] | None, batch: int, classes: int | None) -> bool:
    """(samples, classes) that was normalised along the samples."""
    if dim is None or shape is None or len(shape) != 2 or shape[0] < 2:
        return False
    return dim % len(shape) == 0 and shape[0] == batch and classes is not None


def _broadcasts(head: Iterable[Any], batch: int) -> Iterable[tuple[int, ...]]:
    """A prediction of (N, 1) against a target of (N,) becomes (N, N): every sample against every other. Where both
    sides depend on the network it is a comparison of pairs, and meant."""
    for node in head:
        inputs = graph.inputs_of(node)
        if batch < 2 or graph.kind_of(node) not in _AGAINST_TARGET or len(inputs) != 1:
            continue
        before = inputs[0]
        result = graph.shape_of(node) or None
        if graph.kind_of(before) == "expand":  # what the loss functions do before they subtract
            result, before = graph.shape_of(before), (graph.inputs_of(before) or [before])[0]
        shape = graph.shape_of(before)
        if shape is not None and result is not None and _squared(shape, result, batch):
            return [shape, result]
    return []


def _squared(shape: tuple[int, ...], result: tuple[int, ...], batch: int) -> bool:
    """Each sample met every other: the batch stands twice in the result, and once, beside ones, in what went in."""
    if len(result) < 2 or result[-2:] != (batch, batch) or shape == result:
        return False
    return [size for size in shape if size != 1] == [batch]


def _targets(head: list[Any]) -> torch.Tensor | None:
    for node in head:
        if graph.kind_of(node) in ("nllloss", "nllloss2d", "nlllossnd"):
            return saved(node, "target")
    return None


def _against_inputs(inputs: list[torch.Tensor], target: torch.Tensor | None) -> tuple[float | None, float | None]:
    """(share of targets that are the next token of the input, share that are the same token)."""
    tokens = next((one for one in inputs if one.dim() == 2 and not one.is_floating_point() and one.shape[1] > 2), None)
    if tokens is None or target is None:
        return None, None
    batch, length = tokens.shape
    flat = target.reshape(-1)
    if flat.numel() == batch * length:
        goal = flat.reshape(batch, length)
        return _same(goal[:, :-1], tokens[:, 1:]), _same(goal, tokens)
    if flat.numel() == batch * (length - 1):
        goal = flat.reshape(batch, length - 1)
        return _same(goal, tokens[:, 1:]), _same(goal, tokens[:, :-1])
    return None, None


def _same(left: torch.Tensor, right: torch.Tensor) -> float | None:
    counted = left != -100
    total = int(counted.sum())
    return float(((left == right) & counted).sum()) / total if total else None


def tensor_look(tensor: torch.Tensor) -> TensorLook | None:
    """None for what cannot be looked at."""
    try:
        return look_at(tensor)
    except (RuntimeError, NotImplementedError):
        return None
