"""How closely to look at a step."""

from __future__ import annotations

from typing import Literal

Level = Literal["off", "guard", "module", "op"]
LEVELS: tuple[Level, ...] = ("off", "guard", "module", "op")
"""off: only step boundaries. guard: losses, and whether gradients and weights are finite. module: statistics of every
module's inputs, outputs, output gradients, of parameters and their gradients. op: every operator too."""
