"""Random generators a program made itself: torch.Generator, numpy's, and random.Random, each with a state to hold."""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Drawn:
    """A generator's state at some moment."""

    state: Any

    @classmethod
    def of(cls, generator: Any) -> Drawn:
        if isinstance(generator, torch.Generator):
            return cls(generator.get_state())
        if isinstance(generator, random.Random):
            return cls(generator.getstate())
        bits = getattr(generator, "bit_generator", None)
        return cls(generator.get_state(legacy=False) if bits is None else bits.state)

    def put_back(self, generator: Any) -> None:
        if isinstance(generator, torch.Generator):
            generator.set_state(self.state)
        elif isinstance(generator, random.Random):
            generator.setstate(self.state)
        elif hasattr(generator, "bit_generator"):
            generator.bit_generator.state = self.state
        else:
            generator.set_state(self.state)

    def same(self, other: Drawn) -> bool:
        if isinstance(self.state, torch.Tensor):
            return bool(torch.equal(self.state, other.state))
        return pickle.dumps(self.state) == pickle.dumps(other.state)


def is_generator(value: Any) -> bool:
    """Whether this is a generator with a state of its own; numpy's without importing numpy."""
    if isinstance(value, torch.Generator | random.Random):
        return not isinstance(value, random.SystemRandom)
    kind = type(value)
    return kind.__name__ in ("Generator", "RandomState") and kind.__module__.partition(".")[0] == "numpy"
