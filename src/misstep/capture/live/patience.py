"""How long a paused training waits for a debugger that is not there, and what it says meanwhile."""

from __future__ import annotations

import sys

TELL_SECONDS = 1.0
"""A link needs a moment to connect; only after that is a missing debugger worth a sentence."""


class Patience:
    """Counts from the moment the debugger was missed; 0 seconds of grace mean for ever."""

    def __init__(self, grace_seconds: float) -> None:
        self.grace = grace_seconds
        self._since: float | None = None
        self._told = False

    def found(self) -> None:
        """Somebody is there."""
        self._since = None

    def is_over(self, now: float, *, reason: str, run: str) -> bool:
        """True when nobody came in time; what is going on is said once."""
        if self._since is None:
            self._since, self._told = now, False
        if not self._told and now - self._since > min(TELL_SECONDS, self.grace or TELL_SECONDS):
            self._told = True
            patience = f"training goes on by itself in {self.grace:g} s" if self.grace else "training waits"
            say(f"{reason or 'paused'}, and no debugger is connected; {patience}.  misstep debug {run}")
        if not self.grace or now - self._since < self.grace:
            return False
        say(f"no debugger came within {self.grace:g} s; training goes on")
        self._since = None
        return True


def say(sentence: str) -> None:
    print(f"misstep: {sentence}", file=sys.stderr, flush=True)
