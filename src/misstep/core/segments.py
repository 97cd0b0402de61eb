"""What a training step spends its time on: every moment of the training thread belongs to exactly one segment.

┌ data ┬ transfer ┬ forward ┬ loss ┬ backward ┬ gradients ┬ optimizer ┬ gap ┐   compile and misstep's own work apart
"""

from __future__ import annotations

from typing import Literal

Segment = Literal[
    "data", "transfer", "forward", "loss", "backward", "gradients", "optimizer", "gap", "compile", "misstep"
]
SEGMENTS: tuple[Segment, ...] = (
    "data",
    "transfer",
    "forward",
    "loss",
    "backward",
    "gradients",
    "optimizer",
    "gap",
    "compile",
    "misstep",
)
DATA, TRANSFER, FORWARD, LOSS, BACKWARD, GRADIENTS, OPTIMIZER, GAP, COMPILE, OWN = range(len(SEGMENTS))
OF_TRAINING = SEGMENTS[:8]
"""The segments a user's step consists of; compiling happens now and then, and our own work is not theirs."""

FIRST, EPOCH, WHOLE, SKIPPED, LEFT = 1, 2, 4, 8, 16
"""Flags of a step: the first one; a data loader began anew in it; it ran as one compiled graph; a gradient scaler
skipped its update; it was left without one."""
