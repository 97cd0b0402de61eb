"""A small seeded part of `make fuzz`, and everything it ever found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz.targets import TARGETS, Bench
from tests.fuzz.work import FOUND, one

CASES = 40
KEPT = sorted(path for path in FOUND.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


@pytest.mark.parametrize("name", TARGETS)
def test_damage_ends_in_an_error_that_is_explained(name: str, bench: Bench) -> None:
    target = TARGETS[name]
    seeds = target.seeds(bench)
    ended = [one(target, bench, target.case(seeds, number)) for number in range(CASES)]
    assert not any(ended[: len(seeds)]), "a sound seed was refused"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_once_stays_mended(path: Path, bench: Bench) -> None:
    target = next(target for name, target in TARGETS.items() if name.replace(" ", "-") == path.parent.name)
    target.seeds(bench)
    one(target, bench, path.read_bytes())
