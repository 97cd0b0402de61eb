"""A hub in this process, and trainees that are small but speak the real protocol through the real link."""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainee import Ask, SmallTrainee

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


@pytest.fixture
def ask(hub: RunningHub) -> Ask:
    """A request with exactly the headers a test wants."""

    def send(path: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
        parts = urllib.parse.urlsplit(hub.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=20)
        given = {"X-Misstep-Token": hub.token} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {name: value for name, value in given.items() if value})
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, told, answer.read()

    return send
