"""How closely each step is looked at: the level asked for, the steps asked for, and what the budget allows."""

from __future__ import annotations

from misstep.capture.step.plan import Plan


def test_the_level_holds_for_every_step_unless_steps_are_named():
    assert [Plan(level="op").level_for(step) for step in (1, 2, 9)] == ["op"] * 3
    chosen = Plan(level="op", steps="2:3")
    assert [chosen.level_for(step) for step in (1, 2, 3, 4)] == ["guard", "op", "op", "guard"]


def test_below_the_guard_no_step_is_looked_at_more_closely():
    assert [Plan(level="off", steps="2").level_for(step) for step in (1, 2)] == ["off", "off"]


def test_one_step_may_be_forced_and_the_next_is_as_planned():
    plan = Plan(level="guard")
    plan.force(3, "op")
    assert plan.level_for(3) == "op"
    plan.spent(3, "op", own=0.1, total=1.0)
    assert plan.level_for(3) == "guard"


def test_a_budget_that_is_exceeded_thins_the_close_steps_and_says_so():
    plan = Plan(level="module", budget=0.1)
    said = [plan.spent(step, plan.level_for(step), own=0.5, total=1.0) for step in range(1, 8)]
    assert plan.interval > 1
    assert [text for text in said if text]
    assert plan.level_for(plan.interval + 1) == "guard"
    assert plan.level_for(2 * plan.interval) == "module"


def test_without_a_budget_nothing_is_thinned():
    plan = Plan(level="module")
    assert not any(plan.spent(step, "module", own=0.9, total=1.0) for step in range(1, 30))
    assert plan.interval == 1
