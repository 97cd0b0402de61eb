"""Everything that can listen to a training: the base class, and the callbacks that come with it."""

from misstep.train.callbacks.base import Callback, CallbackParams, RunContext
from misstep.train.callbacks.checkpoint import BackupAndRestore, CheckpointConfig, ModelCheckpoint, OnRequestExit
from misstep.train.callbacks.monitor import History, LambdaCallback, LossMonitor, StopAtTime, TimeMonitor
from misstep.train.callbacks.monitored import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, SaveBest
from misstep.train.callbacks.progress import ProgressBar
from misstep.train.callbacks.summary import SummaryCollector, read_scalars

__all__ = [
    "BackupAndRestore",
    "Callback",
    "CallbackParams",
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
]
