"""The study file: YAML in MindOptimizer's words, and in a richer vocabulary of ours."""

from misstep.tuning.studyfile.read import check_command, parse_study, read_study
from misstep.tuning.studyfile.study import Chosen, Limits, Parameter, Study, Target
from misstep.tuning.studyfile.words import json_schema

__all__ = [
    "Chosen",
    "Limits",
    "Parameter",
    "Study",
    "Target",
    "check_command",
    "json_schema",
    "parse_study",
    "read_study",
]
