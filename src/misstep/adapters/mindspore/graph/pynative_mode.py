"""PyNative for a moment: code that is usually compiled, run line by line; what was compiled stays compiled."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from mindspore import context


@contextlib.contextmanager
def pynative() -> Iterator[None]:
    mode, jit = context.get_context("mode"), os.environ.get("MS_JIT")
    os.environ["MS_JIT"] = "0"  # read at every call of a compiled function
    if mode != context.PYNATIVE_MODE:
        context.set_context(mode=context.PYNATIVE_MODE)
    try:
        yield
    finally:
        if mode != context.PYNATIVE_MODE:
            context.set_context(mode=mode)
        if jit is None:
            del os.environ["MS_JIT"]
        else:
            os.environ["MS_JIT"] = jit
