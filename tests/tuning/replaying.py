"""A study of recorded curves: the sampler, the pruner and the steps of `misstep tune`, without its processes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import optuna
from problems import SPACE, STEPS, Problem

from misstep.tuning.search import make_pruner, make_sampler, suggest
from misstep.tuning.studyfile import parse_study
from misstep.tuning.trial.targets import report_steps

optuna.logging.set_verbosity(optuna.logging.ERROR)


@dataclass(frozen=True)
class Replayed:
    """What a study came to."""

    best: float
    steps: int
    """Steps trained in all."""


def replay(problem: Problem, *, tuner: str, pruner: str = "none", seed: int, trials: int = 30) -> Replayed:
    text = json.dumps(
        {
            "command": "python",
            "parameters": SPACE,
            "target": "loss",
            "tuner": {"name": tuner, "seed": seed},
            "pruner": pruner,
        }
    )
    file = parse_study(text, problem.name)
    study = optuna.create_study(sampler=make_sampler(file), pruner=make_pruner(file))
    steps = 0
    for _ in range(trials):
        trial = study.ask()
        curve = problem.curve(suggest(trial, file))
        pruned = False
        reached = 0
        for reached in report_steps(STEPS, 0):
            trial.report(float(curve[reached - 1]), reached)
            if trial.should_prune():
                pruned = True
                break
        steps += reached
        if pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, float(curve[-1]))
    done = [one.value for one in study.trials if one.state == optuna.trial.TrialState.COMPLETE]
    return Replayed(min(float(value) for value in done if value is not None), steps)
