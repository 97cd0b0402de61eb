"""What holds for every test.

A story runs several real processes (trainers, hubs, browsers) on whatever machine is at hand. One that fails is tried
once more, and pytest says so at the end ("1 rerun"): a story that needs its second try is a bug to look into, but not
a reason to stop the work of everybody else.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("story") or item.get_closest_marker("ui"):
            item.add_marker(pytest.mark.flaky(reruns=1))
