"""What misstep itself calls of torch is not the user's training."""

from __future__ import annotations


class Quietly:
    """Counts how deep misstep itself is in calls of torch."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
