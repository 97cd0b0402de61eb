"""How long a paused training waits for a debugger that is not there."""

from __future__ import annotations

import pytest

from misstep.capture.live.patience import TELL_SECONDS, Patience


def test_training_goes_on_when_nobody_came_in_time(capsys: pytest.CaptureFixture[str]):
    patience = Patience(5.0)
    assert not patience.is_over(100.0, reason="4 NaN", run="fox")
    assert not patience.is_over(104.9, reason="4 NaN", run="fox")
    assert patience.is_over(105.0, reason="4 NaN", run="fox")
    told = capsys.readouterr().err
    assert "misstep debug fox" in told
    assert "5 s" in told


def test_a_debugger_that_comes_starts_the_clock_anew():
    patience = Patience(5.0)
    patience.is_over(100.0, reason="", run="fox")
    patience.found()
    assert not patience.is_over(106.0, reason="", run="fox")


def test_without_a_limit_training_waits_for_ever_and_says_it_once(capsys: pytest.CaptureFixture[str]):
    patience = Patience(0)
    assert not any(patience.is_over(100.0 + second, reason="", run="fox") for second in range(1000))
    assert capsys.readouterr().err.count("misstep debug fox") == 1


def test_a_link_that_is_about_to_connect_is_worth_no_sentence(capsys: pytest.CaptureFixture[str]):
    patience = Patience(60.0)
    patience.is_over(100.0, reason="", run="fox")
    patience.is_over(100.0 + TELL_SECONDS / 2, reason="", run="fox")
    assert capsys.readouterr().err == ""
