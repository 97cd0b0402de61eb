"""A few trials at one level each, in every run of the tests; `make bench-verdict` runs them all at all levels."""

from __future__ import annotations

import pytest
from tests.trials.harness import Outcome, Trial, judge, run_bare, run_watched, trials

pytestmark = pytest.mark.story

CHOSEN = {
    "torch/causal_mask_healthy": "op",
    "torch/division_before_masked_attention": "guard",
    "torch/one_guilty_sample": "guard",
    "torch/custom_backward": "module",
    "torch/update_by_hand_data": "module",
    "torch/bare_tensors_fault": "guard",
    "torch/autograd_grad": "op",
    "torch/compiled_inductor_healthy": "op",
    "torch/compiled_submodule": "guard",
    "torch/dies_on_import": "guard",
    "torch/dies_in_a_loader_worker": "guard",
    "torch/lazy_linear": "module",
    "torch/gan_fault": "guard",
    "torch/embedding_normalised_in_place": "guard",
    "torch/nan_in_evaluation": "module",
    "torch/functional_training": "guard",
    "torch/eval_then_best_healthy": "guard",
    "torch/one_guilty_sample_with_batchnorm": "op",
    "mindspore/update_by_assign_healthy": "guard",
    "mindspore/jit_step": "guard",
    "mindspore/log_of_negative": "guard",
}


@pytest.mark.parametrize("trial", [one for one in trials() if one.name in CHOSEN], ids=lambda trial: trial.name)
def test_a_strangers_program_is_left_alone_and_told_truly(trial: Trial) -> None:
    outcome = run_watched(trial, CHOSEN[trial.name], run_bare(trial))
    assert outcome.problems == []


def test_a_claim_that_all_is_well_counts_as_false_where_a_fault_was_planted() -> None:
    trial = next(one for one in trials("torch") if one.kind == "fault")
    outcome = Outcome(trial, "guard")
    judge(outcome, {"verdict": None}, "misstep: no NaN or Inf was seen in 6 steps.")
    assert len(outcome.false) == 1
    assert outcome.missed


def test_a_verdict_on_a_healthy_program_counts_as_false() -> None:
    trial = next(one for one in trials("torch") if one.kind == "healthy")
    outcome = Outcome(trial, "op")
    judge(outcome, {"verdict": {"node": "fc", "op": "aten.log", "step": 2}}, "6 steps")
    assert any("healthy" in text for text in outcome.false)


def test_there_are_sixty_trials_for_both_frameworks() -> None:
    assert len(trials()) >= 60
    assert len(trials("mindspore")) >= 20
