"""The one word that stands before module and line in a profile: written by adapters, read by `misstep profile`."""

from __future__ import annotations

MARK = "misstep"
