"""What was seen of one way to say a call in the other framework: how often it held, on what, and where not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from misstep.migration.apimap.rewrite import Rewrite
from misstep.migration.apimap.signatures import Starred
from misstep.migration.apimap.values import DType, Likeness, Tensorlike

UNSAID = "unsaid"
"""Why a sample failed that no arrangement of arguments can say: no note of its own."""


@dataclass(slots=True)
class Way:
    """One way to say a call in MindSpore, with what was seen."""

    rewrite: Rewrite
    passed: int = 0
    failed: int = 0
    rough: int = 0
    """Of those that passed: farther apart than rounding explains."""
    edges: int = 0
    """Failures on tensors without elements or axes."""
    off: float = 0.0
    """The largest difference among those that passed, against the largest element."""
    gradient: str = ""
    """same · differs · fails · "" where PyTorch has none"""
    forms: dict[str, list[int]] = field(default_factory=dict)
    """Which parameters were given → [passed, failed]."""
    values: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Parameter → what it was → [passed, failed]."""
    notes: list[str] = field(default_factory=list)
    drawn: bool = False

    def count(self, likeness: Likeness, form: Iterable[str], values: Mapping[str, Any], *, edge: bool = False) -> None:
        """One more sample: the parameters it gave, and their values."""
        good = likeness.same
        if good:
            self.passed += 1
            self.rough += likeness.rough
            self.off = max(self.off, likeness.off)
        elif edge:
            self.edges += 1
            return
        else:
            self.failed += 1
        place = 0 if good else 1
        self.forms.setdefault(" ".join(form), [0, 0])[place] += 1
        for key, value in values.items():
            if token := token_of(value):
                self.values.setdefault(key, {}).setdefault(token, [0, 0])[place] += 1
        if likeness.why and len(self.notes) < 4 and likeness.why not in (*self.notes, UNSAID):
            self.notes.append(likeness.why[:120])

    def written(self) -> dict[str, Any]:
        found = {key: value for key, value in asdict(self).items() if value not in ({}, [], "", 0, 0.0, False)}
        found["rewrite"] = {
            key: value for key, value in asdict(self.rewrite).items() if value not in ({}, [], "", False)
        }
        return found


def token_of(value: Any) -> str:
    """What a value is, as far as it may matter: words and flags by themselves, the rest by kind."""
    if isinstance(value, Tensorlike):
        return str(value.array.dtype)
    if isinstance(value, DType):
        return value.name
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, int | float):
        return type(value).__name__
    if isinstance(value, Starred):
        return "star"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}"
    return type(value).__name__
