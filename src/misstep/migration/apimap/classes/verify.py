"""A class of PyTorch and a candidate of MindSpore, constructed with the same arguments and compared.

layers, losses   the lockstep: every output and gradient, evaluating and training, dropout drawn once for both
optimizers       the same gradients three times, the updates compared
schedules        the learning rates of a dozen steps
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from misstep.migration.apimap.classes import mindspore_make, torch_make
from misstep.migration.apimap.classes.recipes import Recipe, recipes
from misstep.migration.apimap.classes.suggestions import SAYS_NOTHING, SYNONYMS, TURNS, Turn
from misstep.migration.apimap.rewrite import Rewrite, arrange, derive
from misstep.migration.apimap.signatures import MISSING, Signature
from misstep.migration.apimap.values import Likeness
from misstep.migration.apimap.way import UNSAID, Way
from misstep.migration.lockstep.stages import check
from misstep.migration.sources import Batch

_RATES_APART = 1e-6


def signature(name: str) -> Signature | None:
    """How the class is constructed, without the parameters its optimizer or schedule takes first."""
    found = torch_make.signature(name)
    if found is None or not name.startswith("torch.optim"):
        return found
    return Signature(found.parameters[1:])


def ways(name: str, target: str) -> list[Way]:
    """The ways onto this class that at least one recipe passes."""
    ours, theirs = signature(name), mindspore_make.signature(target)
    if ours is None or theirs is None:
        return []
    if name.startswith("torch.optim"):
        theirs = Signature(theirs.parameters[1:])
    found: dict[str, Way] = {}
    for recipe in recipes(name):
        given = ours.bind(recipe.args, recipe.keywords)
        if given is None:
            continue
        options = list(_options(name, ours, theirs, given, target))
        if not options:
            found.setdefault("", Way(Rewrite(target))).count(Likeness(False, 0.0, UNSAID), given, {})
        for rewrite in options:
            key = repr((rewrite.names, rewrite.add, rewrite.turn, rewrite.fill))
            way = found.setdefault(key, Way(rewrite))
            way.rewrite.absent = sorted({*way.rewrite.absent, *rewrite.absent})
            way.count(_tried(name, recipe, rewrite, given), given, _seen(given))
    return [way for way in found.values() if way.passed]


def _seen(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values, and beside a list its length: LayerNorm over two axes is another matter than over one."""
    lengths = {f"len({key})": str(len(one)) for key, one in given.items() if isinstance(one, list | tuple)}
    return {**given, **lengths}


def _options(name: str, ours: Signature, theirs: Signature, given: Mapping[str, Any], target: str) -> Iterator[Rewrite]:
    """What the signatures suggest, plain and then with each turn laid over it."""
    silent = [one.name for one in ours.parameters if one.name in SAYS_NOTHING]
    mine = Signature(tuple(one for one in ours.parameters if one.name not in silent))
    spoken = {key: value for key, value in given.items() if key not in silent}
    for turn in TURNS.get(name.rpartition(".")[2], (Turn(),)):
        said = {key: word for key, word in turn.names.items() if word in theirs}
        words = {**SYNONYMS, **{key: (word,) for key, word in said.items()}}
        left = Signature(tuple(one for one in mine.parameters if one.name not in turn.drop))
        for base in derive(left, [theirs], {k: v for k, v in spoken.items() if k not in turn.drop}, target, words):
            fixed = {key: value for key, value in said.items() if key in left}
            add = {key: value for key, value in {**base.add, **turn.add}.items() if value is not MISSING}
            add = {key: value for key, value in add.items() if key not in turn.fill}
            yield replace(
                base,
                names={**base.names, **{key: value for key, value in fixed.items() if key != value}},
                add=add,
                turn=dict(turn.turn),
                fill=dict(turn.fill),
                absent=[*base.absent, *silent, *turn.drop],
            )


def _tried(name: str, recipe: Recipe, rewrite: Rewrite, given: Mapping[str, Any]) -> Likeness:
    try:
        args, keywords = arguments(rewrite, given)
        if recipe.kind == "schedule":
            return _rates_alike(name, recipe, rewrite.target, args, keywords)
        right = mindspore_make.built(rewrite.target, recipe, args, keywords)
        cut = 1 if recipe.kind == "loss" else len(recipe.inputs)
        batch = Batch(recipe.inputs[:cut], recipe.inputs[cut:], ())
        report = check(torch_make.built(name, recipe), right, batch)
    except Exception as wrong:  # every failure of a candidate is an answer
        return Likeness(False, 0.0, f"{type(wrong).__name__}: {' '.join(str(wrong).split())}"[:120])
    if report.failed is not None:
        first = report.findings[0]
        return Likeness(False, 0.0, f"{first.what} {first.parameter} {first.left}"[:120])
    off = max((row.relative or 0.0 for row in report.layers), default=0.0)
    return Likeness(True, float(off))


def _rates_alike(name: str, recipe: Recipe, target: str, args: list[Any], keywords: Mapping[str, Any]) -> Likeness:
    ours = torch_make.rates(name, recipe)
    theirs = mindspore_make.rates(target, args, keywords, len(ours))
    off = float(np.max(np.abs(np.subtract(ours, theirs)))) / max(ours)
    return Likeness(off <= _RATES_APART, off, "" if off <= _RATES_APART else f"{off:.2g} apart")


def arguments(rewrite: Rewrite, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The values a rewrite makes of these."""
    changed = {
        key: eval(rewrite.turn[key].format("v"), {"v": value}) if key in rewrite.turn else value
        for key, value in given.items()
    }
    args, keywords = arrange(changed, rewrite)
    said = {rewrite.names.get(key, key) for key in given if key not in rewrite.absent}
    for key, expression in rewrite.fill.items():
        wanted = {field for _, field, _, _ in string.Formatter().parse(expression) if field}
        if key not in said and wanted <= given.keys():
            keywords[key] = eval(expression.format(**{one: one for one in wanted}), dict(given))
            said.add(key)
    for key, value in rewrite.add.items():
        if key not in said:
            keywords[key] = value
    return args, keywords
