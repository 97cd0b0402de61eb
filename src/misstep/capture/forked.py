"""Which process this is: a forked child inherits our hooks and our open files, and must use neither.

DataLoader workers and other forks start as copies of a training process in the middle of its step. `when_forked` lets
whoever holds such state drop it in the child; the parent never notices.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable

_forget: list[weakref.WeakMethod[Callable[[], None]]] = []
_forked = False
_listening = False


def when_forked(forget: Callable[[], None]) -> None:
    """Call a bound method in every child forked from here on; held weakly, so that it keeps nothing alive.

    >>> when_forked(self._go_inert)
    """
    global _listening
    if not _listening and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)
        _listening = True
    _forget[:] = [method for method in _forget if method() is not None]
    _forget.append(weakref.WeakMethod(forget))


def is_forked() -> bool:
    """True in a child that was forked after something asked to hear of it."""
    return _forked


def is_data_worker() -> bool:
    """True in a DataLoader worker, forked or spawned: it may run a model to prepare data, but it does not train."""
    workers = sys.modules.get("torch.utils.data._utils.worker")
    return workers is not None and workers.get_worker_info() is not None


def _in_child() -> None:
    global _forked
    _forked = True
    for method in _forget:
        forget = method()
        if forget is None:
            continue
        try:
            forget()
        except Exception:
            pass  # a child that keeps our state is bad; a child that dies of it is worse
    _forget.clear()
