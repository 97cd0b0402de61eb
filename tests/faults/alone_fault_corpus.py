"""Broken programs are diagnosed with their true cause, healthy ones with nothing: a seeded part of the corpus.

The whole corpus is `python bench/diagnose.py`.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from corpus import HERE, Program, programs, run_here

from misstep.diagnosis.ranking import EXPLAINS
from misstep.diagnosis.rules import RULES

BROKEN = [one for one in programs("torch_broken") if one.half == "set"]
HEALTHY = programs("torch_healthy")
MINDSPORE = [one for one in programs("mindspore_broken", "mindspore_healthy") if one.half == "set"]
_CHOSEN = random.Random(14)


@pytest.mark.parametrize("program", _CHOSEN.sample(BROKEN, 16), ids=lambda one: one.name)
def test_the_first_finding_of_a_broken_program_is_its_cause(program: Program, tmp_path: Path) -> None:
    diagnosis = run_here(program, tmp_path)
    assert [one.rule for one in diagnosis.causes][:1] == [program.cause]


@pytest.mark.parametrize("program", _CHOSEN.sample(HEALTHY, 16), ids=lambda one: one.name)
def test_nothing_is_said_of_a_healthy_program(program: Program, tmp_path: Path) -> None:
    diagnosis = run_here(program, tmp_path)
    assert [(one.rule, str(one.title)) for one in diagnosis.errors] == []
    assert diagnosis.looks > 0


@pytest.mark.mindspore
@pytest.mark.parametrize("program", _CHOSEN.sample(MINDSPORE, 8), ids=lambda one: one.name)
def test_mindspore_programs_get_the_same_verdicts(program: Program, tmp_path: Path) -> None:
    diagnosis = run_here(program, tmp_path)
    expected = [] if program.healthy else [program.cause]
    assert [one.rule for one in diagnosis.causes][:1] == expected


def test_every_cause_of_the_corpus_and_of_the_graph_is_a_rule() -> None:
    named = {one.cause for one in programs() if not one.healthy}
    explained = {*EXPLAINS, *(one for many in EXPLAINS.values() for one in many)}
    outside = {"silent.weights_unchanged", "signal.not-finite"}
    assert (named | explained) - outside <= set(RULES)


def test_every_cell_of_the_corpus_is_read() -> None:
    written = sum(len(re.findall(r"^# %%", path.read_text(encoding="utf-8"), re.M)) for path in HERE.glob("*.cells"))
    assert len(programs()) == written
    assert {one.half for one in programs()} == {"set", "held"}
