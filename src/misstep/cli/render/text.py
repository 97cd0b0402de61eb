"""How things look to a person: numbers rounded for eyes, counts with their noun, a verdict as a sentence."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from rich.console import Console

from misstep.cli.render.shown import Terminal
from misstep.core.finding import TensorFact, Verdict
from misstep.sentences.cli import general as words
from misstep.sentences.text import Text, said

PHASES: dict[str, Text] = {
    "input": words.PHASE_INPUT,
    "forward": words.PHASE_FORWARD,
    "loss": words.PHASE_LOSS,
    "backward": words.PHASE_BACKWARD,
    "optimizer": words.PHASE_OPTIMIZER,
}
PRECISIONS: dict[str, Text] = {
    "operator": words.PRECISION_OPERATOR,
    "module": words.PRECISION_MODULE,
    "step": words.PRECISION_STEP,
}
STATES: dict[str, Text] = {
    "starting": words.STATE_STARTING,
    "running": words.STATE_RUNNING,
    "paused": words.STATE_PAUSED,
    "finished": words.STATE_FINISHED,
    "failed": words.STATE_FAILED,
    "stopped": words.STATE_STOPPED,
    "lost": words.STATE_LOST,
}
BIRTHS: dict[str, Text] = {
    "origin": words.BIRTH_ORIGIN,
    "propagated": words.BIRTH_PROPAGATED,
    "unknown": words.BIRTH_UNKNOWN,
}


def terminal() -> Console:
    """Where a command prints; into a pipe or a file lines are wide, so that no address is broken in two."""
    return Terminal(width=None if sys.stdout.isatty() else 160)


def number(value: float | None, *, digits: int = 4) -> str:
    """0.3141592 → 0.3142; NaN and inf as such; nothing for None."""
    return "" if value is None else f"{value:.{digits}g}"


def word_for(table: Mapping[str, Text], key: str) -> str:
    """The word in the language in force; what a later misstep may have written stays as it is."""
    return table[key]() if key in table else key


def count_steps(count: int) -> str:
    return words.ONE_STEP() if count == 1 else words.STEPS(count=f"{count:,}")


def count_hits(by_severity: Mapping[str, int]) -> str:
    """'2 errors, 1 warning', or 'no hits'."""
    nouns = (
        ("error", words.ONE_ERROR, words.ERRORS),
        ("warning", words.ONE_WARNING, words.WARNINGS),
        ("info", words.ONE_NOTE, words.NOTES),
    )
    parts = [
        one() if count == 1 else many(count=f"{count:,}")
        for severity, one, many in nouns
        if (count := by_severity.get(severity, 0))
    ]
    return ", ".join(parts) or words.NO_HITS()


def verdict_sentence(verdict: Verdict, *, ranks: int = 1) -> str:
    """'step 412, forward, blocks.3 (Linear): output has 1,204 NaN, inputs were finite; train.py:87 `torch.log(y)`'."""
    place = verdict.node + (f" ({verdict.op})" if verdict.op and verdict.op not in verdict.node else "")
    rank = words.ON_RANK(rank=verdict.rank) if ranks > 1 else ""
    text = words.VERDICT(step=verdict.step, rank=rank, phase=word_for(PHASES, verdict.phase), place=place)
    if verdict.outputs:
        first = verdict.outputs[0]
        text += words.VERDICT_OUTPUT(what=_role(first), description=said(first.description))
    if verdict.inputs:
        bad = next((fact for fact in verdict.inputs if fact.nan or fact.inf), None)
        text += words.INPUT_BAD(address=bad.address) if bad else words.INPUTS_FINITE()
    return f"{text}; {verdict.source}" if verdict.source is not None else text


def moment(seconds: float) -> str:
    """The time of day for today, the date for older things."""
    then, now = time.localtime(seconds), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def _role(fact: TensorFact) -> str:
    return fact.address.rpartition(":")[2].partition("@")[0] or "output"
