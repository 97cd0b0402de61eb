"""The words of a study file and what they mean: one table for the reader, the JSON Schema and the documents.

A word that MindOptimizer has keeps its meaning there.
"""

from __future__ import annotations

from typing import Any

GOALS = ("minimize", "maximize")
TUNERS = ("tpe", "gp", "random", "grid", "cmaes", "qmc", "nsga2", "nsga3")
PRUNERS = ("none", "median", "percentile", "asha", "hyperband", "threshold", "patient", "pbt")
PRUNE_ON = ("nan", "error", "divergence", "dead")
REDUCTIONS = ("last", "min", "max", "mean")
GROUPS = ("system_defined", "metric")
KINDS = ("float", "int")
KNOBS = ("workers", "batch_size", "precision", "compile", "bucket_mb", "threads")
PRIORS = ("range_test",)
MEASURED = ("loss", "step_seconds", "memory_mb", "seconds")
"""Targets every run has without recording anything."""

_NUMBER: dict[str, Any] = {"type": "number"}
_TEXT: dict[str, Any] = {"type": "string"}
_DURATION = {"type": ["number", "string"], "description": "Seconds, or a text like 90s, 10m, 2h, 1d."}

PARAMETER: dict[str, Any] = {
    "bounds": {
        "type": "array",
        "items": _NUMBER,
        "minItems": 2,
        "maxItems": 2,
        "description": "[low, high); an int never reaches high.",
    },
    "low": {**_NUMBER, "description": "The least value, itself included."},
    "high": {**_NUMBER, "description": "The greatest value, itself included."},
    "choice": {
        "type": "array",
        "minItems": 1,
        "description": "The values to choose from: numbers, words, true, false.",
    },
    "type": {"enum": list(KINDS), "description": "float or int; a bound written with a point makes it float."},
    "log": {"type": "boolean", "description": "Search the exponent: for learning rates and weight decay."},
    "step": {**_NUMBER, "description": "Only low, low + step, low + 2 step …"},
    "decimal": {"type": "integer", "minimum": 0, "description": "Digits after the point."},
    "source": {"enum": ["system_defined", "user_defined"], "description": "MindOptimizer's; makes no difference here."},
    "when": {**_TEXT, "description": 'The parameter exists only when this holds, like optimizer == "sgd".'},
    "prior": {
        "enum": list(PRIORS),
        "description": "range_test: short runs over the range show first where a learning rate is likely to lie.",
    },
    "knob": {"enum": list(KNOBS), "description": "A system knob: its range comes from this machine."},
}
TARGET: dict[str, Any] = {
    "name": {**_TEXT, "description": "loss, step_seconds, memory_mb, seconds, or the name of a recorded scalar."},
    "goal": {"enum": list(GOALS), "description": "minimize unless given."},
    "group": {"enum": list(GROUPS), "description": "metric: a result of an evaluation."},
    "normalize_type": {**_TEXT, "description": "MindOptimizer's; the samplers here need none."},
    "reduce": {
        "enum": list(REDUCTIONS),
        "description": "Which of the recorded values counts; mean is of the last tenth.",
    },
    "pattern": {**_TEXT, "description": "A regular expression on the output; its first group is the number."},
}
TUNER: dict[str, Any] = {
    "name": {"enum": list(TUNERS), "description": "How values are proposed; tpe unless given."},
    "args": {"type": "object", "description": "Passed to the sampler of Optuna; method is MindOptimizer's."},
    "seed": {"type": "integer", "description": "Makes the proposals repeatable with one worker."},
}
PRUNER: dict[str, Any] = {
    "name": {"enum": list(PRUNERS), "description": "Who ends a trial that falls behind; none unless given."},
    "args": {"type": "object", "description": "Passed to the pruner of Optuna."},
}
LIMITS: dict[str, Any] = {
    "timeout": {**_DURATION, "description": "A trial that runs longer is pruned."},
    "steps": {"type": "integer", "minimum": 1, "description": "A trial is complete after this many steps."},
    "memory_mb": {**_NUMBER, "description": "A trial whose processes use more is pruned."},
    "retries": {"type": "integer", "minimum": 0, "description": "How often a failed trial is run again."},
    "backoff": {**_DURATION, "description": "Wait before the first retry; doubled before each further one."},
    "gpus": {"type": "integer", "minimum": 0, "description": "Devices of a trial."},
    "cpus": {"type": "integer", "minimum": 1, "description": "Cores of a trial; sets OMP_NUM_THREADS."},
}


def _mapping(words: dict[str, Any], description: str, *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": words,
        "required": list(required),
        "additionalProperties": False,
        "description": description,
    }


_TARGET = {"anyOf": [_TEXT, _mapping(TARGET, "What is optimized.")]}
STUDY: dict[str, Any] = {
    "study": {**_TEXT, "description": "The name; the file's own unless given."},
    "command": {
        "anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}],
        "description": "What one trial runs. {lr} becomes the value of lr, {parameters} becomes --lr 0.1 … for all,"
        " {overrides} becomes lr=0.1 …, and [--momentum {momentum}] is left out while momentum does not exist.",
    },
    "parameters": {
        "type": "object",
        "additionalProperties": _mapping(PARAMETER, "What is searched."),
        "minProperties": 1,
        "description": "What is searched, by name.",
    },
    "target": {**_TARGET, "description": "What is optimized."},
    "targets": {"type": "array", "items": _TARGET, "minItems": 1, "description": "Several objectives at once."},
    "tuner": {"anyOf": [{"enum": list(TUNERS)}, _mapping(TUNER, "How values are proposed.")]},
    "pruner": {"anyOf": [{"enum": list(PRUNERS)}, _mapping(PRUNER, "Who ends a trial that falls behind.")]},
    "prune_on": {"type": "array", "items": {"enum": list(PRUNE_ON)}, "description": "All of them unless given."},
    "constraints": {"type": "array", "items": _TEXT, "description": "Like layers * width <= 4096 or memory_mb < 8000."},
    "environment": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    "start": {"type": "array", "items": {"type": "object"}, "description": "Values to try first."},
    "summary_base_dir": {**_TEXT, "description": "MindOptimizer's; every trial gets a folder in it."},
    "trials": {"type": "integer", "minimum": 1, "description": "How many; 20 unless given."},
    "workers": {"type": "integer", "minimum": 1, "description": "Trials at once in one process; 1 unless given."},
    "timeout": {**_DURATION, "description": "No trial begins after this."},
    "trial": _mapping(LIMITS, "Limits of one trial."),
    "level": {"enum": ["off", "guard", "module", "op"], "description": "How closely trials are watched; guard."},
    "storage": {**_TEXT, "description": "A file, sqlite:///…, postgresql://…, mysql://… or grpc://host:port."},
    "failures": {"type": "integer", "minimum": 1, "description": "Failed trials in a row that end the study; 5."},
    "heartbeat": {**_DURATION, "description": "How often a worker says that its trial lives; 10s."},
    "grace": {**_DURATION, "description": "A trial without a sign of life for this long is stale; 60s."},
}  # fmt: skip


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a study file, for editors: `misstep tune --schema > study.schema.json`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "misstep study",
        **_mapping(STUDY, "A study of misstep tune; a file of MindOptimizer is one too.", "command", "parameters"),
        "anyOf": [{"required": ["target"]}, {"required": ["targets"]}],
    }
