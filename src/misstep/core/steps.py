"""Which steps a user means: `100:200`, `5,10,15`."""

from __future__ import annotations

from misstep.errors import SettingError


def parse_steps(text: str) -> list[tuple[int, int]] | None:
    """`100:200`, `5,10,15`, `10:` → ranges with both ends; None for every step.

    >>> parse_steps("5,10:12")
    [(5, 5), (10, 12)]
    """
    if not text.strip():
        return None
    ranges = []
    for part in text.split(","):
        first, colon, last = part.strip().partition(":")
        try:
            begin = int(first) if first else 0
            end = (int(last) if last else 2**31) if colon else begin
        except ValueError:
            raise SettingError(f"cannot read the steps {text!r}; they look like 100:200 or 5,10,15") from None
        ranges.append((begin, end))
    return ranges
