"""`from mindinsight.optimizer import HyperConfig`, as MindOptimizer's page has it."""

from misstep.tuning.trial.hyperconfig import HyperConfig

__all__ = ["HyperConfig"]
