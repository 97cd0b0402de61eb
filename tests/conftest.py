"""What holds for every test. No test is tried twice: one that fails now and then has a race, and the race is mended."""

from __future__ import annotations

import signal

import pytest


def pytest_configure() -> None:
    """Started in the background (nohup, &), a program ignores these and its children do too; the stories send them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: begun last, one of them would leave the other core idle until it is over."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
