"""Why the weights of a checkpoint are not loaded into a network: loading goes by exact names, and says little.

>>> why_not_loaded(read_inventory("model.ckpt"), read_inventory("net.py:build"))
[NotLoaded(why='prefix', names=('backbone.fc.weight', …), old='backbone.*', new='*')]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from misstep.migration.pairing import Match, pair
from misstep.migration.params import Inventory
from misstep.migration.words import NO_COUNTERPART

Why = Literal["framework", "prefix", "auto_prefix", "renamed", "shape", "missing", "unexpected"]


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """One reason, and the parameters it keeps out."""

    why: Why
    names: tuple[str, ...]
    """As the network calls them; as the file does for what the network does not know."""
    old: str = ""
    new: str = ""
    """What to rename in the file."""


def why_not_loaded(file: Inventory, network: Inventory) -> list[NotLoaded]:
    """Nothing when every parameter of the network is in the file under its own name, in its own shape."""
    held = {one.name: one for one in file.weights}
    wanted = [one for one in network.weights if one.name.rpartition(".")[2] not in NO_COUNTERPART]
    fitting = {one.name for one in wanted if one.name in held and held[one.name].shape == one.shape}
    if len(fitting) == len(wanted):
        return []
    left = tuple(one.name for one in wanted if one.name not in fitting)
    if file.framework is not None and network.framework is not None and file.framework != network.framework:
        return [NotLoaded("framework", left)]
    found = []
    shapes = tuple(name for name in left if name in held)
    if shapes:
        found.append(NotLoaded("shape", shapes))
    matches = [one for one in pair(file, network).matches if one.right.name in left and one.fits]
    matches = [one for one in matches if one.left.name != one.right.name]
    found += _renames(matches)
    paired = {one.right.name for one in matches}
    missing = tuple(name for name in left if name not in paired and name not in held)
    if missing:
        found.append(NotLoaded("missing", missing))
    known = {one.name for one in wanted} | {one.left.name for one in matches} | NO_COUNTERPART
    unexpected = tuple(name for name in held if name not in known and name.rpartition(".")[2] not in NO_COUNTERPART)
    if unexpected:
        found.append(NotLoaded("unexpected", unexpected))
    return found


def _renames(matches: list[Match]) -> list[NotLoaded]:
    """One prefix for all, names without their path (auto_prefix=False), or names that simply are others."""
    heads: Counter[tuple[str, str]] = Counter()
    for one in matches:
        ours, theirs = one.left.name, one.right.name
        if ours.endswith(f".{theirs}"):
            heads[ours.removesuffix(theirs), ""] += 1
        elif theirs.endswith(f".{ours}"):
            heads["", theirs.removesuffix(ours)] += 1
    names = tuple(one.right.name for one in matches)
    if not matches:
        return []
    if len(heads) == 1 and heads.total() == len(matches):
        (old, new), _ = heads.most_common(1)[0]
        return [NotLoaded("prefix", names, f"{old}*", f"{new}*")]
    if heads.total() == len(matches):
        return [NotLoaded("auto_prefix", names)]
    return [NotLoaded("renamed", names, matches[0].left.name, matches[0].right.name)]
