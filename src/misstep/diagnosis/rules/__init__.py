"""The rules of `misstep diagnose`, one file per family; importing this registers them all."""

from misstep.diagnosis.rules import data, objective, ranks, rate, signal, transformers, wiring
from misstep.diagnosis.rules.rule import FAMILIES, RULES, Found, Rule, findings_of

__all__ = [
    "FAMILIES",
    "RULES",
    "Found",
    "Rule",
    "data",
    "findings_of",
    "objective",
    "ranks",
    "rate",
    "signal",
    "transformers",
    "wiring",
]
