"""What became of a step is one value: whoever hears of it hears the same, and the verdict is worked out once."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from tests.capture.fakes import trained

from misstep.adapters.step.frame import Frame
from misstep.capture.session import Session
from misstep.capture.step import conclude
from misstep.capture.step.outcome import Rerun, StepOutcome
from misstep.core.address import Address
from misstep.core.finding import Verdict
from misstep.core.run import Step
from misstep.core.watching.watch import Hit


def verdict(node: str = "fc", note: str = "") -> Verdict:
    return Verdict(
        step=3, rank=0, phase="forward", kind="nan", node=node, op="log", source=None, inputs=(), outputs=(), note=note,
        precision="operator",
    )  # fmt: skip


def outcome(step: Step, *hits: Hit) -> StepOutcome:
    frame = Frame()
    return StepOutcome(step, frame, *frame.finish(), hits=hits)


def test_an_outcome_cannot_be_changed_afterwards():
    with pytest.raises(FrozenInstanceError):
        outcome(Step(3)).note = "other"  # type: ignore[misc]


def test_a_further_hit_makes_another_outcome():
    before, hit = outcome(Step(3)), Hit(1, 1, Address("fc", step=3, rank=0), "4 NaN")
    assert (before.with_hit(hit).hits, before.hits) == ((hit,), ())
    assert before.with_hit(None) is before


def test_a_step_whose_update_was_left_out_is_skipped():
    assert outcome(Step(3, overflow=True)).skipped
    assert not outcome(Step(3)).skipped


def test_a_replays_own_verdict_counts_more_than_that_of_the_rows():
    found = Rerun("exact", verdict("body/log"), "sample 1 causes it").complete(verdict("fc"))
    assert found is not None
    assert (found.node, found.exact, found.note) == ("body/log", "exact", "sample 1 causes it")


def test_a_healthy_replay_leaves_the_verdict_of_the_rows_and_says_that_it_was_healthy():
    found = Rerun("not exact: the replay was healthy (exact)").complete(verdict("fc", note="as seen"))
    assert found is not None
    assert (found.node, found.exact, found.note) == ("fc", "not exact: the replay was healthy (exact)", "as seen")


def test_what_came_from_another_rank_is_no_verdict_of_this_one():
    assert Rerun("exact", cleared=True).complete(verdict()) is None


def test_listeners_hear_of_every_step_with_its_hits_and_verdict(tmp_path: Path):
    heard: list[StepOutcome] = []

    def listen(session: Session) -> None:
        session.on_step.append(heard.append)

    run = trained(tmp_path, steps=3, fails_at=2, before=listen, recommended=True)
    assert [one.step.number for one in heard] == [0, 1, 2, 3]
    assert [bool(one.hits) for one in heard] == [False, False, True, True]
    assert [one.verdict for one in heard if one.verdict] == [run.verdict]


def test_the_verdict_of_a_step_is_searched_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    searched: list[int] = []
    search = conclude.find_verdict

    def counted(catalog, frame, head, summary, *, rank=0):  # type: ignore[no-untyped-def]
        searched.append(frame.step)
        return search(catalog, frame, head, summary, rank=rank)

    monkeypatch.setattr(conclude, "find_verdict", counted)
    trained(tmp_path, steps=4, fails_at=2, recommended=True)
    assert searched == [2]
