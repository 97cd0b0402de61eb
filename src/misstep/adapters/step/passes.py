"""Passes through the user's loop: how a program with several optimizers counts its steps.

    for real, noise in data:             ┐
        … of_critic.step()   ◄─ before   │ one pass, one step, although weights move twice in it
        … generator(noise)   ◄─ now      │
        … of_generator.step()            ┘

Two moments lie in one pass when the outermost frame in which they differ is the same frame, further on, inside the loop
around the first of them. A call that is made again, or a jump back, is the next pass.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType

Spot = tuple[tuple[int, CodeType, int], ...]
"""A moment of the program: frames by id, code and instruction, the outermost first."""


class Pass:
    """The pass in which an optimizer stepped last."""

    def __init__(self) -> None:
        self._spot: Spot = ()
        self._ends: set[tuple[tuple[CodeType, int], ...]] = set()
        """Places after which the same optimizer steps again before the loop goes round: each is a step of its own."""

    def stepped(self, frame: FrameType | None) -> None:
        """An optimizer steps, called from this frame."""
        self._spot = spot(frame)

    def goes_on(self, frame: FrameType | None) -> bool:
        """Whether what begins now, in this frame, lies in the same pass."""
        return bool(self._spot) and _place(self._spot) not in self._ends and same_pass(self._spot, spot(frame))

    def ends_here(self) -> None:
        """The optimizer that stepped last steps again: from the next pass on, a step ends at this place."""
        if self._spot:
            self._ends.add(_place(self._spot))
        self._spot = ()


def spot(frame: FrameType | None) -> Spot:
    found = []
    while frame is not None:
        found.append((id(frame), frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(reversed(found))


def same_pass(before: Spot, now: Spot) -> bool:
    """Whether `now` follows `before` without any loop around `before` having gone round or ended.

    A frame that is over may lend its id to the next one, which then stands at an earlier instruction.
    """
    for (id_before, code, at), (id_now, code_now, now_at) in zip(before, now):
        if id_before != id_now or code is not code_now:
            return False  # the frame outside of these has made its call again
        if at != now_at:
            return at < now_at and _same_loop(code, at, now_at)
    return False


def _same_loop(code: CodeType, at: int, now_at: int) -> bool:
    around = [loop for loop in _loops(code) if loop[0] <= at <= loop[1]]
    innermost = max(around, default=(0, now_at))
    return innermost[0] <= now_at <= innermost[1]


@lru_cache(maxsize=1024)
def _loops(code: CodeType) -> tuple[tuple[int, int], ...]:
    """First and last instruction of every loop: wherever the code jumps back to."""
    ends: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opcode not in dis.hasjrel and instruction.opcode not in dis.hasjabs:
            continue
        if instruction.argval < instruction.offset and "NO_INTERRUPT" not in instruction.opname:
            ends[instruction.argval] = max(ends.get(instruction.argval, 0), instruction.offset)
    return tuple(ends.items())


def _place(moment: Spot) -> tuple[tuple[CodeType, int], ...]:
    return tuple((code, at) for _, code, at in moment)
