"""Training with callbacks, metrics, loss scale and schedules, the same on PyTorch and MindSpore.

    from misstep.train import Accuracy, LossMonitor, Model
    model = Model(net, loss_fn=loss, optimizer=optimizer, metrics={"accuracy": Accuracy()})
    model.train(10, dataset, callbacks=[LossMonitor()])

The framework is the one the network belongs to. Names are looked up when first used, so importing this costs nothing
and pulls in neither framework.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misstep.train.callbacks import (
        BackupAndRestore,
        Callback,
        CheckpointConfig,
        EarlyStopping,
        History,
        LambdaCallback,
        LearningRateScheduler,
        LossMonitor,
        ModelCheckpoint,
        OnRequestExit,
        ProgressBar,
        ReduceLROnPlateau,
        RunContext,
        SaveBest,
        StopAtTime,
        SummaryCollector,
        TimeMonitor,
        read_scalars,
    )
    from misstep.train.cells import (
        TrainOneStepWithLossScaleCell,
        WithLossCell,
    )
    from misstep.train.checkpoint import (
        SavedParameter,
        load_checkpoint,
        load_param_into_net,
        save_checkpoint,
    )
    from misstep.train.context import (
        GRAPH_MODE,
        PYNATIVE_MODE,
        env_config,
        get_context,
        set_context,
    )
    from misstep.train.dataset import (
        GeneratorDataset,
    )
    from misstep.train.logs import (
        configure_logs,
    )
    from misstep.train.loss_scale import (
        DynamicLossScaleManager,
        DynamicLossScaleUpdateCell,
        FixedLossScaleManager,
        FixedLossScaleUpdateCell,
    )
    from misstep.train.memory import (
        MemoryReport,
        MemoryReuse,
        measure_memory,
        memory_reuse,
        set_memory_reuse,
    )
    from misstep.train.metrics import (
        AUC,
        F1,
        MAE,
        MSE,
        ROC,
        Accuracy,
        BleuScore,
        ConfusionMatrix,
        ConfusionMatrixMetric,
        CosineSimilarity,
        Dice,
        EvaluationBase,
        Fbeta,
        HausdorffDistance,
        Loss,
        MeanSurfaceDistance,
        Metric,
        OcclusionSensitivity,
        Perplexity,
        Precision,
        Recall,
        RootMeanSquareDistance,
        Top1CategoricalAccuracy,
        Top5CategoricalAccuracy,
        TopKCategoricalAccuracy,
        auc,
        get_metric_fn,
        names,
        rearrange_inputs,
    )
    from misstep.train.model import (
        Model,
    )
    from misstep.train.printing import (
        Print,
    )
    from misstep.train.printing.file import (
        parse_print,
    )
    from misstep.train.schedules import (
        CosineDecayLR,
        ExponentialDecayLR,
        InverseDecayLR,
        LearningRateSchedule,
        NaturalExpDecayLR,
        PolynomialDecayLR,
        WarmUpLR,
        cosine_decay_lr,
        exponential_decay_lr,
        inverse_decay_lr,
        natural_exp_decay_lr,
        piecewise_constant_lr,
        polynomial_decay_lr,
        warmup_lr,
    )
    from misstep.train.seed import (
        DeterminismReport,
        determinism_report,
        get_seed,
        seed_worker,
        set_seed,
    )

_NAMES: dict[str, tuple[str, ...]] = {
    "callbacks": (
        "BackupAndRestore",
        "Callback",
        "CheckpointConfig",
        "EarlyStopping",
        "History",
        "LambdaCallback",
        "LearningRateScheduler",
        "LossMonitor",
        "ModelCheckpoint",
        "OnRequestExit",
        "ProgressBar",
        "ReduceLROnPlateau",
        "RunContext",
        "SaveBest",
        "StopAtTime",
        "SummaryCollector",
        "TimeMonitor",
        "read_scalars",
    ),
    "cells": (
        "TrainOneStepWithLossScaleCell",
        "WithLossCell",
    ),
    "checkpoint": (
        "SavedParameter",
        "load_checkpoint",
        "load_param_into_net",
        "save_checkpoint",
    ),
    "context": ("GRAPH_MODE", "PYNATIVE_MODE", "env_config", "get_context", "set_context"),
    "dataset": ("GeneratorDataset",),
    "logs": ("configure_logs",),
    "loss_scale": (
        "DynamicLossScaleManager",
        "DynamicLossScaleUpdateCell",
        "FixedLossScaleManager",
        "FixedLossScaleUpdateCell",
    ),
    "memory": ("MemoryReport", "MemoryReuse", "measure_memory", "memory_reuse", "set_memory_reuse"),
    "metrics": (
        "AUC",
        "F1",
        "MAE",
        "MSE",
        "ROC",
        "Accuracy",
        "BleuScore",
        "ConfusionMatrix",
        "ConfusionMatrixMetric",
        "CosineSimilarity",
        "Dice",
        "EvaluationBase",
        "Fbeta",
        "HausdorffDistance",
        "Loss",
        "MeanSurfaceDistance",
        "Metric",
        "OcclusionSensitivity",
        "Perplexity",
        "Precision",
        "Recall",
        "RootMeanSquareDistance",
        "Top1CategoricalAccuracy",
        "Top5CategoricalAccuracy",
        "TopKCategoricalAccuracy",
        "auc",
        "get_metric_fn",
        "names",
        "rearrange_inputs",
    ),
    "model": ("Model",),
    "printing.file": ("parse_print",),
    "printing": ("Print",),
    "schedules": (
        "CosineDecayLR",
        "ExponentialDecayLR",
        "InverseDecayLR",
        "LearningRateSchedule",
        "NaturalExpDecayLR",
        "PolynomialDecayLR",
        "WarmUpLR",
        "cosine_decay_lr",
        "exponential_decay_lr",
        "inverse_decay_lr",
        "natural_exp_decay_lr",
        "piecewise_constant_lr",
        "polynomial_decay_lr",
        "warmup_lr",
    ),
    "seed": ("DeterminismReport", "determinism_report", "get_seed", "seed_worker", "set_seed"),
}

_HOMES = {name: f"misstep.train.{home}" for home, names in _NAMES.items() for name in names}

__all__ = [
    "AUC",
    "F1",
    "GRAPH_MODE",
    "MAE",
    "MSE",
    "PYNATIVE_MODE",
    "ROC",
    "Accuracy",
    "BackupAndRestore",
    "BleuScore",
    "Callback",
    "CheckpointConfig",
    "ConfusionMatrix",
    "ConfusionMatrixMetric",
    "CosineDecayLR",
    "CosineSimilarity",
    "DeterminismReport",
    "Dice",
    "DynamicLossScaleManager",
    "DynamicLossScaleUpdateCell",
    "EarlyStopping",
    "EvaluationBase",
    "ExponentialDecayLR",
    "Fbeta",
    "FixedLossScaleManager",
    "FixedLossScaleUpdateCell",
    "GeneratorDataset",
    "HausdorffDistance",
    "History",
    "InverseDecayLR",
    "LambdaCallback",
    "LearningRateSchedule",
    "LearningRateScheduler",
    "Loss",
    "LossMonitor",
    "MeanSurfaceDistance",
    "MemoryReport",
    "MemoryReuse",
    "Metric",
    "Model",
    "ModelCheckpoint",
    "NaturalExpDecayLR",
    "OcclusionSensitivity",
    "OnRequestExit",
    "Perplexity",
    "PolynomialDecayLR",
    "Precision",
    "Print",
    "ProgressBar",
    "Recall",
    "ReduceLROnPlateau",
    "RootMeanSquareDistance",
    "RunContext",
    "SaveBest",
    "SavedParameter",
    "StopAtTime",
    "SummaryCollector",
    "TimeMonitor",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "TrainOneStepWithLossScaleCell",
    "WarmUpLR",
    "WithLossCell",
    "auc",
    "configure_logs",
    "cosine_decay_lr",
    "determinism_report",
    "env_config",
    "exponential_decay_lr",
    "get_context",
    "get_metric_fn",
    "get_seed",
    "inverse_decay_lr",
    "load_checkpoint",
    "load_param_into_net",
    "measure_memory",
    "memory_reuse",
    "names",
    "natural_exp_decay_lr",
    "parse_print",
    "piecewise_constant_lr",
    "polynomial_decay_lr",
    "read_scalars",
    "rearrange_inputs",
    "save_checkpoint",
    "seed_worker",
    "set_context",
    "set_memory_reuse",
    "set_seed",
    "warmup_lr",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'misstep.train' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    _begin_logs()
    return value


def _begin_logs() -> None:
    """The log is set up with the first use, when the environment asks for it."""
    if not _logs_begun:
        _logs_begun.append(True)
        logs = importlib.import_module("misstep.train.logs")
        if logs.wanted():
            logs.configure_logs()


_logs_begun: list[bool] = []


def __dir__() -> list[str]:
    return list(__all__)
