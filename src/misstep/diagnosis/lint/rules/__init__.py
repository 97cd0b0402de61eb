"""The rules, a file a family; importing this package registers them all."""

from misstep.diagnosis.lint.rules import evaluation, loop, network, objective, statements

__all__ = ["evaluation", "loop", "network", "objective", "statements"]
