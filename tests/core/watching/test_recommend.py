"""The recommended set: quiet on a healthy training, and awake for what goes wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.tensors import StepRows, Tensor
from misstep.core.stats import INPUTS_SEEN
from misstep.core.watching.evaluate import Evaluator
from misstep.core.watching.recommend import recommended

TYPES = ["Linear", "Tanh", "Linear", "loss", "Parameter", "Parameter", "Parameter", "Parameter"]


class Training:
    """A two-layer network with tanh that learns a sine, in numpy, told to an evaluator like a real run."""

    def __init__(self, *, rate: float = 0.05, scale: float = 1.0) -> None:
        random = np.random.default_rng(0)
        self.x = random.uniform(-2, 2, (64, 1))
        self.weights = {
            "fc1.weight": random.normal(0, scale, (1, 16)),
            "fc1.bias": np.zeros(16),
            "fc2.weight": random.normal(0, 0.25, (16, 1)),
            "fc2.bias": np.zeros(1),
        }
        self.rate = rate

    def step(self, number: int) -> StepRows:
        before = {name: weight.copy() for name, weight in self.weights.items()}
        w = self.weights
        hidden = self.x @ w["fc1.weight"] + w["fc1.bias"]
        active = np.tanh(hidden)
        out = active @ w["fc2.weight"] + w["fc2.bias"]
        error = out - np.sin(self.x)
        d_out = 2 * error / len(self.x)
        d_hidden = (d_out @ w["fc2.weight"].T) * (1 - active**2)
        gradients = {
            "fc1.weight": self.x.T @ d_hidden,
            "fc1.bias": d_hidden.sum(0),
            "fc2.weight": active.T @ d_out,
            "fc2.bias": d_out.sum(0),
        }
        for name, gradient in gradients.items():
            w[name] = w[name] - self.rate * gradient
        made: list[tuple[str, Any, Any]] = [
            ("fc1:output", hidden, None),
            ("act:output", active, None),
            ("fc2:output", out, None),
            ("loss:loss", (error**2).mean(), None),
            *[(f"{name}:grad", gradient, None) for name, gradient in gradients.items()],
            *[(f"{name}:param", weight.copy(), before[name]) for name, weight in w.items()],
        ]
        tensors = [(name, Tensor(now, previous, step=number)) for name, now, previous in made]
        return StepRows(tensors, types=[*TYPES, *["Parameter"] * 4], flags=[INPUTS_SEEN] * len(tensors), step=number)

    def start(self) -> StepRows:
        """Only the weights, before the first step; what has not run yet holds nothing."""
        first = self.step(0)
        nothing = np.zeros(0)
        weights = {name: tensor.before for name, tensor in first.tensors if name.endswith(":param")}
        first.tensors = [(name, Tensor(weights.get(name, nothing), step=0)) for name, _ in first.tensors]
        return first


def hits_of(training: Training, evaluator: Evaluator, *, steps: int = 200) -> list[Any]:
    found = training.start().hits(evaluator)
    for number in range(1, steps + 1):
        found += training.step(number).hits(evaluator)
    return found


def test_a_healthy_training_has_no_errors_and_no_warnings_by_default() -> None:
    assert hits_of(Training(), Evaluator(recommended(cheap=True))) == []


def test_the_full_set_warns_a_healthy_training_little() -> None:
    hits = hits_of(Training(), Evaluator(recommended()))

    assert {hit.severity for hit in hits} <= {"warning"}
    assert {hit.condition for hit in hits} <= {"weight_change_too_small"}


def test_a_frozen_weight_is_noticed() -> None:
    hits = hits_of(Training(rate=0.0), Evaluator(recommended()), steps=1)

    assert {(hit.condition, hit.address.node) for hit in hits} == {
        (condition, node)
        for condition in ("weight_not_changed", "weight_change_too_small")
        for node in ("fc1.weight", "fc2.weight")
    }


def test_exploding_and_saturated_training_is_noticed() -> None:
    exploding = hits_of(Training(rate=50.0), Evaluator(recommended()), steps=2)
    saturated = hits_of(Training(scale=1e6), Evaluator(recommended()), steps=1)

    assert any(hit.condition == "weight_change_too_large" for hit in exploding)
    assert any(hit.condition == "activation_range" and hit.address.node == "act" for hit in saturated)
    assert any(hit.condition == "gradient_vanishing" for hit in saturated)


def test_weights_that_start_at_zero_are_noticed_and_biases_are_not() -> None:
    training = Training()
    training.weights["fc2.weight"][:] = 0

    hits = training.start().hits(Evaluator(recommended(cheap=True)))

    assert [(hit.condition, str(hit.address)) for hit in hits] == [("weight_initialization", "fc2.weight:param@0#0")]


def test_a_nan_is_an_error_with_its_origin() -> None:
    training = Training()
    training.x[3] = math.nan

    hits = training.step(1).hits(Evaluator(recommended(cheap=True)))

    assert (hits[0].severity, hits[0].birth, hits[0].address.node) == ("error", "origin", "fc1")
    assert {hit.condition for hit in hits} == {"tensor_overflow", "operator_overflow"}


def test_the_cheap_set_needs_statistics_only() -> None:
    evaluator = Evaluator(recommended(cheap=True))
    Training().step(1).tell(evaluator)
    needs = evaluator.needs()

    assert (needs.previous, needs.ranges, needs.level) == (frozenset(), {}, "module")


def test_the_sets_are_those_of_the_reference_with_its_thresholds() -> None:
    full = {watch.name: watch.parameters for watch in recommended()}

    assert [watch.id for watch in recommended()] == list(range(1, len(full) + 1))
    assert {watch.name for watch in recommended(cheap=True)} < set(full)
    assert full["recommended_weight_change_too_large"]["abs_mean_update_ratio_gt"] == 1.0
    assert full["recommended_gradient_vanishing"] == {"abs_mean_lt": 1e-9}
    assert full["recommended_tanh_activation_range"] == {
        "range_start_inclusive": math.tanh(-8.8),
        "range_end_inclusive": math.tanh(8.8),
        "range_percentage_lt": 0.1,
    }
    assert full["recommended_relu_activation_range"]["range_percentage_gt"] == 99.9
    assert len(full) == 11
