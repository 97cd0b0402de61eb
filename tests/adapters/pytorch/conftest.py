from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from misstep.adapters.registry import adapter_named
from misstep.capture.session import Session
from misstep.settings import Settings


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """watched("module") attaches a session that raises on its own errors, and ends it after the test."""
    sessions: list[Session] = []

    def watch(level: str, **settings: Any) -> Session:
        folder = str(tmp_path / str(len(sessions)))
        session = Session(Settings({"level": level, "dir": folder, "strict": True, **settings}))
        sessions.append(session.use(adapter_named("pytorch")))
        return session

    yield watch
    for session in sessions:
        session.end()
