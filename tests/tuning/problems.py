"""Six small trainings with recorded learning curves, so that a search of thirty trials is replayed in a moment.

    python tests/tuning/problems.py        trains them again and writes curves.npz

Every problem was trained with 500 random settings; a trial is answered from the recorded ones around it, the nearer the
heavier, so that the landscape is as smooth as that of the training itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("curves.npz")
SETTINGS, STEPS = 500, 40
NEIGHBOURS = 12
SPACE = {
    "lr": {"low": 1e-4, "high": 10.0, "log": True},
    "momentum": {"low": 0.0, "high": 0.99},
    "width": {"low": 2, "high": 64, "log": True, "type": "int"},
    "decay": {"low": 1e-6, "high": 1e-1, "log": True},
}
Array = np.ndarray[Any, Any]


class Problem:
    """One training, as its recorded curves tell it."""

    def __init__(self, name: str, settings: Array, curves: Array) -> None:
        self.name, self._settings, self._curves = name, settings, curves

    def curve(self, params: dict[str, Any]) -> Array:
        """The losses of a trial with these values, one a step."""
        away = ((self._settings - unit(params)) ** 2).sum(axis=1)
        near = np.argpartition(away, NEIGHBOURS)[:NEIGHBOURS]
        weight = 1 / (away[near] + 1e-4)
        found: Array = np.exp(np.log(self._curves[near] + 1e-9).T @ weight / weight.sum())
        return found


def problems() -> list[Problem]:
    data = np.load(FILE)
    return [Problem(name, data[f"{name}-settings"], data[f"{name}-curves"]) for name in sorted(TRAININGS)]


def unit(params: dict[str, Any]) -> Array:
    """The values of a trial as a point in the unit cube."""
    place = []
    for name, about in SPACE.items():
        low, high, value = float(about["low"]), float(about["high"]), float(params[name])
        by: Callable[[float], float] = (lambda x: float(np.log(x))) if about.get("log") else float
        place.append((by(value) - by(low)) / (by(high) - by(low)))
    return np.array(place)


# ── the trainings ────────────────────────────────────────────────────────────────────────────────────────────────────


def _mlp(seed: int, inputs: int, make: Callable[[Array, np.random.Generator], Array]) -> Callable[..., Iterator[float]]:
    """A network with one hidden layer, by hand: inputs, tanh, one output, squared error."""

    def train(lr: float, momentum: float, width: int, decay: float) -> Iterator[float]:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(128, inputs))
        y = make(x, rng)
        weights = [rng.normal(size=(inputs, width)) / np.sqrt(inputs), rng.normal(size=(width, 1)) / np.sqrt(width)]
        speed = [np.zeros_like(one) for one in weights]
        for step in range(STEPS * 5):
            hidden = np.tanh(x @ weights[0])
            wrong = hidden @ weights[1] - y
            back = wrong @ weights[1].T * (1 - hidden**2)
            for at, slope in enumerate((x.T @ back / len(x), hidden.T @ wrong / len(x))):
                speed[at] = momentum * speed[at] - lr * (slope + decay * weights[at])
                weights[at] = np.clip(weights[at] + speed[at], -1e3, 1e3)
            if step % 5 == 4:
                yield float(min(np.mean(wrong**2), 1e6))

    return train


TRAININGS: dict[str, Callable[..., Iterator[float]]] = {
    "linear": _mlp(1, 4, lambda x, rng: x.sum(axis=1, keepdims=True)),
    "sine": _mlp(2, 1, lambda x, rng: np.sin(3 * x)),
    "product": _mlp(3, 2, lambda x, rng: x[:, :1] * x[:, 1:]),
    "noisy": _mlp(4, 6, lambda x, rng: x[:, :1] + 0.3 * rng.normal(size=(len(x), 1))),
    "steps": _mlp(5, 3, lambda x, rng: np.sign(x[:, :1] + x[:, 1:2])),
    "rings": _mlp(6, 2, lambda x, rng: np.cos(2 * np.linalg.norm(x, axis=1, keepdims=True))),
}


def record() -> None:
    kept: dict[str, Array] = {}
    for name, train in TRAININGS.items():
        rng = np.random.default_rng(0)
        settings, curves = [], []
        for place in rng.random((SETTINGS, len(SPACE))):
            values = {}
            for (key, about), at in zip(SPACE.items(), place):
                low, high = float(about["low"]), float(about["high"])
                value = low * (high / low) ** at if about.get("log") else low + at * (high - low)
                values[key] = round(value) if about.get("type") == "int" else value
            settings.append(unit(values))
            curves.append(list(train(**values)))
        kept[f"{name}-settings"] = np.array(settings, np.float32)
        kept[f"{name}-curves"] = np.array(curves, np.float32)
    np.savez_compressed(FILE, **kept)


if __name__ == "__main__":
    record()
