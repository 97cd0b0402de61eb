"""The last words of a run: "no NaN or Inf was seen" is said of a clean run, and never of another."""

from __future__ import annotations

from collections import Counter

import pytest

from misstep.cli.render.report import what_was_seen
from misstep.core.run import Step
from misstep.core.seen import Seen


def said(seen: Seen, *, verdict: bool = False) -> str:
    hits = Counter({"warning": seen.hits} if seen.hits else {})
    return "\n".join(what_was_seen(seen, by_severity=hits, verdict=verdict))


def test_a_clean_run_is_called_clean():
    assert said(Seen(steps=3)) == (
        "no NaN or Inf was seen in 3 steps. Checked: every operator of the steps; evaluation and code between steps"
        " are not checked."
    )


def test_a_clean_run_says_how_closely_it_was_watched():
    seen = Seen()
    seen.add(Step(1, captured="op"))
    seen.add(Step(2, captured="guard"))
    assert "Checked: losses, gradients and weights;" in said(seen)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Seen(steps=0), "no training step was seen"),
        (Seen(steps=3, bad_losses=2, first_bad_loss=2), "the loss was NaN or Inf in 2 steps, first at step 2"),
        (Seen(steps=3, hits=4), "watchpoints were hit: 4 warnings"),
        (Seen(steps=2, skipped=6), "6 updates were skipped because gradients overflowed; 2 steps were updated"),
        (Seen(steps=9, unwatched=5), "5 steps of 9 steps were not watched (level off)"),
        (Seen(steps=3, lost=10), "10 records could not be kept"),
    ],
)
def test_what_speaks_against_a_run_is_said_instead(seen: Seen, words: str):
    assert words in said(seen)
    assert "no NaN or Inf was seen" not in said(seen)


def test_beside_a_verdict_only_what_it_does_not_cover_is_said():
    assert said(Seen(steps=3, bad_losses=1, first_bad_loss=3, hits=2), verdict=True) == ""
    assert "skipped" in said(Seen(steps=3, skipped=1), verdict=True)
