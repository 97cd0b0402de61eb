"""How two sides were set up: eps, momentum, padding, learning rate, wherever a run recorded them with its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from misstep.store.foreign.source import Entry

_HARMLESS = frozenset(
    ["inplace", "foreach", "fused", "capturable", "differentiable", "pin_memory", "parallel_mode", "format",
     "data_format", "use_locking", "is_group", "half_to_float", "self_is_result", "output_mask", "size", "loss_scale",
     "training", "device", "initial_lr"]
)  # fmt: skip
"""How a thing is computed, not what: two runs may differ in these and be equal."""
_SAME_WORD = {
    "alpha": "negative_slope",
    "epsilon": "eps",
    "group": "groups",
    "init_learning_rate": "lr",
    "learning_rate": "lr",
    "in_channels": "in_features",
    "out_channels": "out_features",
}
_CLOSE = 1e-9


@runtime_checkable
class SetUp(Protocol):
    """A source that knows how its nodes were set up."""

    def settings(self) -> Mapping[str, Mapping[str, str]]:
        """By the name of a node: the settings it was made with."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting of one node that the two sides do not share."""

    node: str
    setting: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.node} {self.setting} is {self.left} on the left, {self.right} on the right"


def changed_settings(left: object, right: object, pairs: Iterable[tuple[Entry, Entry]]) -> tuple[SettingChange, ...]:
    """Every setting that both sides know and that differs, in the order of the pairs; the optimizer's last."""
    if not (isinstance(left, SetUp) and isinstance(right, SetUp)):
        return ()
    ours, theirs = left.settings(), right.settings()
    names = dict.fromkeys((one.name, other.name) for one, other in pairs)
    names |= dict.fromkeys((name, name) for name in ours if name.startswith("optimizer") and name in theirs)
    found = []
    for one, other in names:
        mine, yours = plain_settings(ours.get(one, {})), plain_settings(theirs.get(other, {}))
        for setting, value in mine.items():
            if setting in yours and not _equal(value, yours[setting]):
                found.append(SettingChange(one, setting, value, yours[setting]))
    return tuple(found)


def plain_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings in one spelling for both frameworks, without those that change nothing."""
    return {_SAME_WORD.get(name, name): value for name, value in settings.items() if name not in _HARMLESS}


def _equal(left: str, right: str) -> bool:
    """Equal as text or as numbers; `(1, 1)` is `1`, as the frameworks write a padding."""
    if left == right:
        return True
    mine, yours = _numbers(left), _numbers(right)
    if mine is None or yours is None:
        return False
    if len(mine) != len(yours):
        mine, yours = list(set(mine)), list(set(yours))
    return len(mine) == len(yours) and all(abs(a - b) <= _CLOSE * max(abs(a), abs(b)) for a, b in zip(mine, yours))


def _numbers(text: str) -> list[float] | None:
    words = {"True": "1", "False": "0"}
    try:
        return [float(words.get(one.strip(), one)) for one in text.strip("()").split(",")]
    except ValueError:
        return None
