"""The multilayer perceptron of the contract, in numpy and float64: what every framework's rows must agree with."""

from __future__ import annotations

import numpy as np

from misstep.core.stats import Array, TensorStats

BATCH = np.random.default_rng(7).standard_normal((6, 3)).astype(np.float32)
TARGET = np.random.default_rng(8).standard_normal((6, 2)).astype(np.float32)
LEARNING_RATE = 0.1

RTOL, ATOL = 1e-4, 1e-6
"""float32 against float64 over sums of at most six products: rounding stays below 1e-6 of the largest term; a
hundredfold margin is kept for values that nearly cancel."""

ELEMENT_ATOL = 1e-4
"""For single elements: MindSpore's tanh on the CPU is a rational approximation, good to about 2e-5 after a backward."""


def weights(seed: int = 3) -> dict[str, Array]:
    """The initial weights every framework's model is given, so that they can be compared with each other."""
    random = np.random.default_rng(seed)
    return {
        "fc1.weight": random.standard_normal((5, 3)).astype(np.float32),
        "fc1.bias": random.standard_normal(5).astype(np.float32),
        "fc2.weight": random.standard_normal((2, 5)).astype(np.float32),
        "fc2.bias": random.standard_normal(2).astype(np.float32),
    }


def step_of_mlp(start: dict[str, Array], x: Array = BATCH, target: Array = TARGET) -> dict[str, Array]:
    """One step of fc1 → tanh → fc2 → mean square, by address: outputs, gradients, loss, weights after the update."""
    w1, b1, w2, b2 = (start[name].astype(np.float64) for name in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"))
    x, target = x.astype(np.float64), target.astype(np.float64)
    h = x @ w1.T + b1
    a = np.tanh(h)
    y = a @ w2.T + b2
    dy = 2 * (y - target) / y.size
    da = dy @ w2
    dh = da * (1 - a**2)
    gradients = {"fc1.weight": dh.T @ x, "fc1.bias": dh.sum(0), "fc2.weight": dy.T @ a, "fc2.bias": dy.sum(0)}
    return {
        "Mlp:input": x,
        "fc1:input": x,
        "fc1:output": h,
        "act:input": h,
        "act:output": a,
        "fc2:input": a,
        "fc2:output": y,
        "Mlp:output": y,
        "loss:loss": np.mean((y - target) ** 2),
        "Mlp:grad_output": dy,
        "fc2:grad_output": dy,
        "act:grad_output": da,
        "fc1:grad_output": dh,
        **{f"{name}:grad": gradient for name, gradient in gradients.items()},
        **{f"{name}:param": start[name] - LEARNING_RATE * gradient for name, gradient in gradients.items()},
    }


def assert_stats(stats: TensorStats, expected: Array, what: str = "") -> None:
    """The row says of the tensor what numpy says of it."""
    values = np.asarray(expected, np.float64)
    assert (stats.count, stats.shape, stats.finite) == (values.size, values.shape, True), what
    wanted = {
        "min": values.min(),
        "max": values.max(),
        "mean": values.mean(),
        "abs_mean": np.abs(values).mean(),
        "l2": np.linalg.norm(values),
        "std": values.std(),
        "negatives": (values < 0).sum(),
        "positives": (values > 0).sum(),
    }
    found = {name: getattr(stats, name) for name in wanted}
    far = {
        name: (found[name], wanted[name]) for name in wanted if not np.isclose(found[name], wanted[name], RTOL, ATOL)
    }
    assert not far, f"{what}: (recorded, numpy) differ in {far}"
