"""From a study file to Optuna: the space of values, the sampler that proposes them, the pruner that compares curves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from misstep.errors import TuneError, need
from misstep.sentences import studyfile
from misstep.sentences import tune as sentences
from misstep.tuning.studyfile.study import Parameter, Study, exists

STARTUP = 8
"""Random trials before the sampler learns; Optuna's ten leave little of a study of thirty."""

COMPLETE_FIRST = 2
"""Trials that are never pruned: what later ones are compared with."""
WARM_UP = 0.2
"""The share of a trial that is never judged. Chosen on eight recorded trainings that no test knows: it saves 53 to 57 %
of the steps there, and the best of thirty trials is kept in 233 of 240 studies."""
RUNG = 0.125
"""The share of a trial after which successive halving drops the first half."""


def suggest(trial: Any, study: Study) -> dict[str, Any]:
    """Values for one trial: of the parameters that exist, given those before them."""
    values: dict[str, Any] = {}
    for one in study.parameters:
        if exists(one, values):
            values[one.name] = _suggested(trial, one)
    return values


def _suggested(trial: Any, one: Parameter) -> Any:
    if one.kind == "choice":
        return trial.suggest_categorical(one.name, list(one.choice))
    if one.kind == "int":
        return trial.suggest_int(one.name, int(one.low), int(one.high), step=int(one.step or 1), log=one.log)
    value = trial.suggest_float(one.name, one.low, one.high, step=one.step, log=one.log)
    return round(value, one.decimal) if one.decimal is not None else value


def violations(study: Study, values: Mapping[str, Any], *, before: bool) -> list[float]:
    """How far each constraint is overstepped; `before` a trial runs, only those that need nothing measured."""
    names = {one.name for one in study.parameters}
    found = []
    for constraint in study.constraints:
        if before and not constraint.names <= names:
            continue
        try:
            found.append(constraint.violation(values))
        except KeyError as missing:
            if str(missing).strip("'") not in names and not before:
                what = studyfile.CONSTRAINT_NEEDS.of(text=constraint.text, name=str(missing).strip("'"))
                raise TuneError(studyfile.AT.of(place=study.where("constraints"), what=what)) from None
            found.append(0.0)  # a parameter that does not exist now binds nothing
    return found


def make_sampler(study: Study, *, say: Callable[[str], None] = lambda text: None) -> Any:
    """The sampler a study file asks for."""
    samplers = need("optuna", "for tuning", extra="tune").samplers
    chosen, seed = study.tuner, study.tuner.seed
    constrained: dict[str, Any] = {"constraints_func": _constraints} if study.constraints else {}
    makers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: samplers.TPESampler(
            **{"multivariate": True, "group": True, "n_startup_trials": STARTUP, **chosen.args},
            seed=seed,
            **constrained,
        ),
        "gp": lambda: _gaussian_process(samplers, study, constrained),
        "random": lambda: samplers.RandomSampler(seed=seed, **chosen.args),
        "grid": lambda: samplers.GridSampler(grid_of(study), seed=seed, **chosen.args),
        "cmaes": lambda: samplers.CmaEsSampler(seed=seed, **chosen.args),
        "qmc": lambda: samplers.QMCSampler(seed=seed, **chosen.args),
        "nsga2": lambda: samplers.NSGAIISampler(seed=seed, **chosen.args, **constrained),
        "nsga3": lambda: samplers.NSGAIIISampler(seed=seed, **chosen.args, **constrained),
    }
    name = chosen.name
    if name == "gp" and not _has("torch"):
        say(sentences.NO_TORCH.of())
        name = "tpe"
    if name == "cmaes":
        need("cmaes", "for tuner: cmaes")
    made = _made(makers[name], study, "tuner")
    if not any(one.prior for one in study.parameters):
        return made
    from misstep.tuning.samplers import WithPrior  # Optuna is an extra

    return WithPrior(made, study)


def _gaussian_process(samplers: Any, study: Study, constrained: dict[str, Any]) -> Any:
    """Of one target it is shown the ranks."""
    args = {"n_startup_trials": STARTUP, **study.tuner.args}
    if constrained or len(study.targets) > 1:
        return samplers.GPSampler(**args, seed=study.tuner.seed, **constrained)
    from misstep.tuning.samplers import OnRanks  # Optuna is an extra

    inner = samplers.GPSampler(**{**args, "n_startup_trials": 0}, seed=study.tuner.seed)
    return OnRanks(inner, startup=int(args["n_startup_trials"]), seed=study.tuner.seed)


def make_pruner(study: Study) -> Any:
    """The pruner a study file asks for."""
    pruners = need("optuna", "for tuning", extra="tune").pruners
    chosen = study.pruner

    def late(make: Callable[[int], Any], share: float) -> Any:
        from misstep.tuning.pruning import AfterShare  # Optuna is an extra

        make(1)  # refuses wrong arguments now, with the file's line
        return AfterShare(make, share, steps=study.limits.steps)

    makers: dict[str, Callable[[], Any]] = {
        "none": pruners.NopPruner,
        "median": lambda: late(
            lambda first: pruners.MedianPruner(
                **{"n_startup_trials": COMPLETE_FIRST, "n_warmup_steps": first, **chosen.args}
            ),
            WARM_UP,
        ),
        "percentile": lambda: late(
            lambda first: pruners.PercentilePruner(
                **{"percentile": 25.0, "n_startup_trials": 5, "n_warmup_steps": first, **chosen.args}
            ),
            WARM_UP,
        ),
        "asha": lambda: late(
            lambda first: pruners.SuccessiveHalvingPruner(
                **{"min_resource": first, "reduction_factor": 2, **chosen.args}
            ),
            RUNG,
        ),
        "hyperband": lambda: pruners.HyperbandPruner(**{"min_resource": 1, "reduction_factor": 3, **chosen.args}),
        "threshold": lambda: pruners.ThresholdPruner(**chosen.args),
        "patient": lambda: pruners.PatientPruner(pruners.MedianPruner(), **{"patience": 5, **chosen.args}),
    }
    if chosen.name not in makers:
        what = studyfile.NEEDS_RAY.of(name=chosen.name)
        raise TuneError(studyfile.AT.of(place=study.where("pruner"), what=what))
    return _made(makers[chosen.name], study, "pruner")


def grid_of(study: Study) -> dict[str, list[Any]]:
    """Every value of every parameter."""
    grid: dict[str, list[Any]] = {}
    for one in study.parameters:
        if one.kind == "choice":
            grid[one.name] = list(one.choice)
            continue
        step = one.step or 1
        count = int((one.high - one.low) / step + 1e-9) + 1
        values = [one.low + at * step for at in range(count)]
        grid[one.name] = [int(value) for value in values] if one.kind == "int" else values
    return grid


def _made(make: Callable[[], Any], study: Study, key: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Optuna calls experimental here has been so for years
        try:
            return make()
        except (TypeError, ValueError) as error:
            what = studyfile.REFUSED.of(why=str(error))
            raise TuneError(studyfile.AT.of(place=study.where(key), what=what)) from None


def _constraints(trial: Any) -> list[float]:
    return [float(value) for value in trial.user_attrs.get("constraints", ())]


def _has(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None
