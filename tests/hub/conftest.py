"""A hub in this process, and trainees that are small but speak the real protocol through the real link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trainee import SmallTrainee

from misstep.hub import RunningHub, start_hub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[RunningHub]:
    with start_hub(tmp_path) as running:
        yield running


@pytest.fixture
def trainee(hub: RunningHub, tmp_path: Path) -> Iterator[SmallTrainee]:
    one = SmallTrainee(tmp_path, hub)
    yield one
    one.close()
