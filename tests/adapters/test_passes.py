"""Where one pass of the user's loop ends and the next begins, told from the frames of two moments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise

from misstep.adapters.step.passes import Pass, Spot, same_pass, spot


def _here() -> Spot:
    return spot(sys._getframe(1))


def _steps(moments: list[Spot]) -> int:
    """How many steps the moments of updates make, when each that goes on in a pass shares its step."""
    return 1 + sum(not same_pass(before, now) for before, now in pairwise(moments))


def test_two_updates_in_one_pass_are_one_step() -> None:
    moments = []
    for _ in range(5):
        moments.append(_here())
        moments.append(_here())
    assert _steps(moments) == 5


def test_updates_in_functions_called_from_one_pass_are_one_step() -> None:
    moments = []

    def update() -> None:
        moments.append(_here())

    for _ in range(5):
        update()
        update()
    assert _steps(moments) == 5


def test_one_function_that_updates_twice_is_one_step_a_call() -> None:
    moments = []

    def update() -> None:
        moments.append(_here())
        moments.append(_here())

    while len(moments) < 10:
        update()
    assert _steps(moments) == 5


def test_a_loop_after_another_begins_with_a_step_of_its_own() -> None:
    moments: list[Spot] = []
    for _ in range(3):
        moments += [_here()]
    for _ in range(2):
        moments += [_here()]
    assert _steps(moments) == 5


def test_an_update_in_some_passes_joins_them() -> None:
    moments = []
    for number in range(6):
        if number == 4:
            continue
        moments.append(_here())
        if number % 3 == 0:
            moments.append(_here())
    assert _steps(moments) == 5


def test_a_generator_that_feeds_the_loop_is_no_pass_of_its_own() -> None:
    def batches() -> Iterator[int]:
        yield from range(4)

    moments = []
    for _ in batches():
        moments.append(_here())
        moments.append(_here())
    assert _steps(moments) == 4


def test_an_optimizer_that_steps_twice_in_a_pass_ends_a_step_each_time() -> None:
    loop, ends = Pass(), []

    def forward(update: Callable[[], None]) -> None:
        ends.append(not loop.goes_on(sys._getframe(1)))
        update()

    def again() -> None:
        if not ends[-1]:
            loop.ends_here()
        loop.stepped(sys._getframe(2))

    for _ in range(3):
        forward(again)
        forward(again)
    assert ends == [True, False, True, True, True, True]
