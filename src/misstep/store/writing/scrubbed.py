"""The one scrubber of this process, through which everything goes that is written about it: run.json, events, reports,
the tail of its log.

It knows the values of this environment's secrets, so it is made anew when the environment has changed: a script may
set HF_TOKEN itself.
"""

from __future__ import annotations

import os
import time

from misstep.core.secrets import Scrubber
from misstep.errors import MisstepError
from misstep.settings import Settings

_LOOK_AGAIN_SECONDS = 1.0
"""Every line a program prints goes through it; to read the environment each time would cost more than the line."""


class _Kept:
    """The scrubber made last, of which environment, and until when it is not doubted."""

    scrubber = Scrubber({})
    environment: dict[str, str] | None = None
    until = 0.0


def scrubber() -> Scrubber:
    """Of the environment as it is now, or was a second ago."""
    now = time.monotonic()
    if now >= _Kept.until:
        _Kept.until = now + _LOOK_AGAIN_SECONDS
        environment = dict(os.environ)
        if environment != _Kept.environment:
            _Kept.scrubber = Scrubber(environment, names=_own_names())
            _Kept.environment = environment
    return _Kept.scrubber


def _own_names() -> list[str]:
    try:
        return str(Settings.load().secrets).split(",")
    except MisstepError:  # told elsewhere; the names everybody has are hidden all the same
        return os.environ.get("MISSTEP_SECRETS", "").split(",")
