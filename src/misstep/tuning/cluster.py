"""Trials on a Ray cluster: the same study file, Ray's placement of machines and devices, its Hyperband and PBT.

    Ray ── a trial ── TrialRun, as on one machine ── its curve reported to Ray, which may stop, resume or mutate it

Optuna still proposes the values (Ray's OptunaSearch over the study's own storage); a trial that Ray resumes finds its
checkpoints where it left them, in $MISSTEP_CHECKPOINTS. Every trial is an ordinary run in the folder of runs, so that
folder is on a disk the machines share.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from misstep.errors import TuneError, need
from misstep.sentences import tune as sentences
from misstep.sentences.studyfile import AT
from misstep.tuning.search import make_sampler, suggest
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import place_for
from misstep.tuning.storage.shared import open_study, told
from misstep.tuning.storage.table import Table, from_optuna
from misstep.tuning.studyfile import read_study
from misstep.tuning.studyfile.study import Parameter, Study, exists
from misstep.tuning.trial.run import TrialRun

ENDED = "misstep_ended"


def run_on_ray(study: Study, *, address: str, base: str, trials: int | None = None) -> Table:
    """Run a study on a cluster: `local` starts one here, `auto` takes the one that runs, else its address."""
    ray = need("ray", "for --ray", extra="ray")
    tune = need("ray.tune", "for --ray", extra="ray")
    if len(study.targets) > 1:
        raise TuneError(AT.of(place=study.where("targets"), what=sentences.ONE_TARGET_ON_RAY.of()))
    base = str(Path(base).absolute())
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    began = not ray.is_initialized()
    if began:
        where: dict[str, Any] = {} if address == "local" else {"address": address}
        ray.init(**where, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        wanted = trials or study.trials
        tuner = tune.Tuner(
            tune.with_resources(_trainable(study, base), _resources(study)),
            param_space=_space(tune, study) if study.pruner.name == "pbt" else {},
            tune_config=tune.TuneConfig(
                metric="value",
                mode="max" if study.targets[0].goal == "maximize" else "min",
                num_samples=wanted,
                max_concurrent_trials=study.workers if study.workers > 1 else None,
                search_alg=None if study.pruner.name == "pbt" else _search(study),
                scheduler=_scheduler(tune, study),
            ),
            run_config=tune.RunConfig(storage_path=str(Path(base) / "studies" / "ray"), name=study.name, verbose=0),
        )
        results = tuner.fit()
        return _kept(study, base, results)
    finally:
        if began:
            ray.shutdown()


def _trainable(study: Study, base: str) -> Any:
    path, here = str(Path(study.path).absolute()), os.getcwd()

    def trial(config: dict[str, Any]) -> None:
        from ray import tune

        os.chdir(here)
        file = read_study(path)
        context = tune.get_context()
        number = int(context.get_trial_id().rpartition("_")[2], 16)  # a count, or a random word of hexadecimal digits
        values: dict[str, Any] = {}
        for one in file.parameters:
            if one.name in config and exists(one, values):
                values[one.name] = config[one.name]
        run = TrialRun(file, number, values, base=base)
        given = tune.get_checkpoint()
        if given is not None:  # Ray resumes it, or has it go on from the weights of a better one
            shutil.rmtree(run.checkpoints, ignore_errors=True)
            given.to_directory(str(run.checkpoints))

        def report(step: int, value: float) -> bool:
            has = run.checkpoints.is_dir() and any(run.checkpoints.iterdir())
            kept = tune.Checkpoint.from_directory(str(run.checkpoints)) if has else None
            tune.report({"value": value, "step": step, "run": run.directory.name}, checkpoint=kept)
            return False

        outcome = run.run(report=report)
        if outcome.values is None and outcome.state != "PRUNED":
            raise TuneError(f"trial {number}: {outcome.why}")
        final = outcome.values[0] if outcome.values else _worst(file)
        tune.report({"value": final, "run": run.directory.name, ENDED: outcome.ended, "why": str(outcome.why)})

    return trial


def _worst(study: Study) -> float:
    return -1e30 if study.targets[0].goal == "maximize" else 1e30


def _resources(study: Study) -> dict[str, float]:
    return {"cpu": float(study.limits.cpus or 1), "gpu": float(study.limits.gpus)}


class _Space:
    """The search space as Ray wants it: something that can be pickled, called with a trial, and says nothing."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def __call__(self, trial: Any) -> None:
        suggest(trial, self._study)


def _search(study: Study) -> Any:
    optuna_search = need("ray.tune.search.optuna", "for --ray", extra="ray")
    return optuna_search.OptunaSearch(
        space=_Space(study),
        metric="value",
        mode="max" if study.targets[0].goal == "maximize" else "min",
        sampler=make_sampler(study),
    )


def _scheduler(tune: Any, study: Study) -> Any:
    """Ray's own schedulers for the words that mean the same there."""
    schedulers = need("ray.tune.schedulers", "for --ray", extra="ray")
    name, args = study.pruner.name, study.pruner.args
    if name in ("asha", "median"):
        return schedulers.ASHAScheduler(**{"time_attr": "step", **args})
    if name == "hyperband":
        return schedulers.HyperBandScheduler(**{"time_attr": "step", **args})
    if name == "pbt":
        mutations = {one.name: _domain(tune, one) for one in study.parameters}
        every = {"time_attr": "training_iteration", "perturbation_interval": 4, **args}
        explore = _within({one.name: (one.low, one.high) for one in study.parameters if one.kind != "choice"})
        return schedulers.PopulationBasedTraining(hyperparam_mutations=mutations, custom_explore_fn=explore, **every)
    return None


def _within(bounds: dict[str, tuple[float, float]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Ray's PBT multiplies values by 0.8 or 1.2, out of their bounds if need be: bring them back."""

    def explore(config: dict[str, Any]) -> dict[str, Any]:
        inside = {
            name: type(config[name])(min(max(config[name], low), high))
            for name, (low, high) in bounds.items()
            if name in config
        }
        return {**config, **inside}

    return explore


def _space(tune: Any, study: Study) -> dict[str, Any]:
    return {one.name: _domain(tune, one) for one in study.parameters}


def _domain(tune: Any, one: Parameter) -> Any:
    if one.kind == "choice":
        return tune.choice(list(one.choice))
    if one.kind == "int":
        make = tune.lograndint if one.log else tune.randint
        return make(int(one.low), int(one.high) + 1)
    return tune.loguniform(one.low, one.high) if one.log else tune.uniform(one.low, one.high)


def _kept(study: Study, base: str, results: Any) -> Table:
    """The results in a study of our own, so that every command and the page read them like any other."""
    optuna = need("optuna", "for tuning", extra="tune")
    connection = Connection(place_for(study.name, study.storage, base))
    kept = open_study(connection, study.name, directions=study.directions)
    facts = {
        "targets": [{"name": one.name, "goal": one.goal} for one in study.targets],
        "parameters": [one.name for one in study.parameters],
        "log": [one.name for one in study.parameters if one.log],
        "wanted": len(results),
    }
    kept.set_user_attr("misstep", facts)
    for result in results:
        metrics = result.metrics or {}
        ended = str(metrics.get(ENDED, "failed" if result.error else "pruner"))
        attributes = {"ended": ended, "run": metrics.get("run", ""), **told(str(metrics.get("why", "")))}
        states = optuna.trial.TrialState
        state = states.COMPLETE if ended == "complete" else states.FAIL if result.error else states.PRUNED
        values = {name: value for name, value in (result.config or {}).items() if study.parameter(name) is not None}
        curve = {}
        with contextlib.suppress(Exception):
            frame = result.metrics_dataframe
            curve = {int(step): float(value) for step, value in zip(frame["step"], frame["value"]) if step == step}
        kept.add_trial(
            optuna.create_trial(
                state=state,
                value=float(metrics["value"]) if state == states.COMPLETE else None,
                params=values,
                distributions={name: _distribution(optuna, study, name) for name in values},
                user_attrs=attributes,
                intermediate_values=curve,
            )
        )
    return from_optuna(kept)


def _distribution(optuna: Any, study: Study, name: str) -> Any:
    one = study.parameter(name)
    assert one is not None
    kinds = optuna.distributions
    if one.kind == "choice":
        return kinds.CategoricalDistribution(list(one.choice))
    if one.kind == "int":
        return kinds.IntDistribution(int(one.low), int(one.high), log=one.log, step=int(one.step or 1))
    return kinds.FloatDistribution(one.low, one.high, log=one.log, step=one.step)
