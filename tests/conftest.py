"""What holds for every test.

A story runs several real processes (trainers, hubs, browsers) on whatever machine is at hand, and the tests beside a
real hub talk to it over sockets. One that fails is tried once more, and pytest says so at the end ("1 rerun"): a test
that needs its second try is a bug to look into, but not a reason to stop the work of everybody else.
"""

from __future__ import annotations

import signal

import pytest

REAL_PROCESSES = {"stories", "hub", "web", "cli"}
"""Folders whose tests start servers or programs."""


def pytest_configure() -> None:
    """Started in the background (nohup, &), a program ignores these and its children do too; the stories send them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if REAL_PROCESSES.intersection(item.path.parts) or item.get_closest_marker("ui"):
            item.add_marker(pytest.mark.flaky(reruns=1))
