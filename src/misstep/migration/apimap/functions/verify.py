"""A PyTorch function and a candidate of MindSpore, executed on the same values.

    for each sample    PyTorch's result · the arguments arranged for MindSpore · its result · the difference
    then               the gradients of both, on the first that passes
    gives              one Way: what to write, where it holds, where not

A failing sample is explained where it can be: by a parameter MindSpore lacks, by a value (`mode="area"`) that no
passing sample has, by a type, by a tensor without elements.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from misstep.migration.apimap.functions import mindspore_surface, torch_surface
from misstep.migration.apimap.functions.mindspore_run import gradients as their_gradients
from misstep.migration.apimap.functions.mindspore_run import run as run_theirs
from misstep.migration.apimap.functions.torch_run import Expected, expected_of
from misstep.migration.apimap.functions.torch_samples import RANDOM, Sample
from misstep.migration.apimap.functions.torch_values import plain
from misstep.migration.apimap.rewrite import Rewrite, derive, spelled_out
from misstep.migration.apimap.signatures import Parameter, Signature
from misstep.migration.apimap.values import Likeness, Tensorlike, compare
from misstep.migration.apimap.way import UNSAID, Way

GRADIENTS = 1
"""Samples on which gradients are compared."""


@dataclass(slots=True)
class Prepared:
    """A sample with everything PyTorch says about it."""

    sample: Sample
    signature: Signature
    given: dict[str, Any]
    expected: Expected


def prepare(name: str, samples: Iterable[Sample]) -> list[Prepared]:
    """PyTorch's side, once for all candidates; samples it refuses or that cannot be bound are left out."""
    found = []
    for sample in samples:
        bound = _bound(name, sample)
        if bound is None:
            continue
        expected = expected_of(name, sample, gradients=_word(name) not in RANDOM)
        if expected is not None:
            found.append(Prepared(sample, bound[0], bound[1], expected))
    return found


def _bound(name: str, sample: Sample) -> tuple[Signature, dict[str, Any]] | None:
    """The arguments by name; the receiver of a method is `input`."""
    if not name.startswith("torch.Tensor."):
        return torch_surface.bound(name, sample.args, sample.keywords)
    found = torch_surface.bound(name, sample.args[1:], sample.keywords)
    if found is None:
        if len(sample.args) > 1 or sample.keywords:
            return None
        found = Signature(()), {}
    whole = Signature((Parameter("input", kind="Tensor"), *found[0].parameters))
    return whole, {"input": sample.args[0], **found[1]}


def ways(name: str, prepared: list[Prepared], target: str) -> list[Way]:
    """The ways onto this target that at least one sample passes."""
    found: dict[str, Way] = {}
    theirs = mindspore_surface.overloads(target)
    for one in prepared:
        given = {key: plain(value) for key, value in one.given.items()}
        options = derive(one.signature, theirs, given, target)
        if not options:
            found.setdefault("", Way(Rewrite(target))).count(
                Likeness(False, 0.0, UNSAID), one.given, {}, edge=one.sample.edge
            )
        tried: set[str] = set()
        fine = False
        for rewrite in [*options, *(spelled_out(one.signature, each) for each in options)]:
            key = repr((rewrite.names, rewrite.add, rewrite.star))
            if key in tried or (fine and key not in found):
                continue  # another spelling is only looked for where the first does not do
            tried.add(key)
            way = found.setdefault(key, Way(rewrite, drawn=_word(name) in RANDOM))
            way.rewrite.absent = sorted({*way.rewrite.absent, *rewrite.absent})
            if len(rewrite.order) > len(way.rewrite.order):
                way.rewrite.order = rewrite.order
            fine = _try(way, one, given, run_theirs, rewrite) or fine
    unsaid = found.pop("", None)
    if unsaid is not None:
        for way in found.values():
            way.failed += unsaid.failed
            _merge(way.forms, unsaid.forms)
    return [way for way in found.values() if way.passed]


def templates(name: str, prepared: list[Prepared], template: str) -> list[Way]:
    """The same for an expression: samples that give exactly its parameters are tried."""
    wanted = set(_fields(template))
    way = Way(Rewrite("", template=template), drawn=_word(name) in RANDOM)
    for one in prepared:
        given = {key: plain(value) for key, value in one.given.items()}
        spoken = {key for key, value in given.items() if key in wanted or not _is_default(one.signature, key, value)}
        if spoken == wanted and wanted <= given.keys():
            _try(way, one, {key: given[key] for key in wanted}, run_theirs, way.rewrite)
    return [way] if way.passed else []


def _is_default(signature: Signature, key: str, value: Any) -> bool:
    parameter = signature.get(key)
    return parameter is not None and not parameter.required and parameter.default == value


def _fields(template: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def _try(way: Way, one: Prepared, given: dict[str, Any], run: Callable[..., Any], rewrite: Rewrite) -> bool:
    result, broke = run(rewrite, given, in_place=one.expected.in_place)
    narrow = False
    if broke and any(isinstance(v, Tensorlike) and v.array.dtype == "int64" for v in _flat(given)):
        result, again = run(rewrite, given, in_place=one.expected.in_place, narrow=True)
        narrow = not again
        broke = again
    likeness = (
        Likeness(False, 0.0, broke)
        if broke
        else compare(one.expected.result, result, drawn=way.drawn and _is_drawn(one), exact=one.expected.exact)
    )
    if likeness.same and narrow:
        likeness = Likeness(True, likeness.off, "int32 indices")
    way.count(likeness, one.given, given, edge=one.sample.edge)
    if (
        (
            likeness.same
            and one.expected.gradients
            and way.gradient in ("", "same")
            and not way.rewrite.target.endswith("_")
        )
        and way.forms
        and sum(good for good, _ in way.forms.values()) <= GRADIENTS
    ):
        way.gradient = _gradients_alike(rewrite, given, one.expected)
    return likeness.same


def _is_drawn(one: Prepared) -> bool:
    return one.given.get("training", True) is not False and one.given.get("train", True) is not False


def _gradients_alike(rewrite: Rewrite, given: dict[str, Any], expected: Expected) -> str:
    found, broke = their_gradients(rewrite, given, expected.weights)
    if broke:
        return "fails"
    return "same" if compare(expected.gradients, found).same else "differs"


def _flat(given: Any) -> Iterable[Any]:
    if isinstance(given, dict):
        for one in given.values():
            yield from _flat(one)
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _flat(one)
    else:
        yield given


def _merge(into: dict[str, list[int]], more: dict[str, list[int]]) -> None:
    for key, (good, bad) in more.items():
        held = into.setdefault(key, [0, 0])
        held[0] += good
        held[1] += bad


def _word(name: str) -> str:
    return name.rpartition(".")[2]
