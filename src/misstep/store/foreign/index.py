"""What file names cannot say of a tensor, in an index beside the files: exports write it, our readers take it back.

Other programs ignore it. With it a tensor that went through another program's layout comes back under its own name, in
its own place of the execution order.
"""

from __future__ import annotations

from typing import Any

from misstep.core.address import ROLE_CODES
from misstep.store.boundary import Damaged, whole_number
from misstep.store.foreign.source import Entry

_OPTIONAL: dict[str, tuple[str, Any]] = {
    "slot": ("slot", 0),
    "type": ("node_type", ""),
    "source": ("source_line", ""),
    "step": ("step", None),
    "call": ("call", 1),
    "updated": ("updated", False),
}
"""Word in the index: (attribute of an entry, what it is when the index is silent)."""


def facts_of(entry: Entry, *, dtype: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """A tensor in the words of the index; what goes without saying is left out."""
    facts: dict[str, Any] = {"name": entry.name, "role": entry.role, "order": entry.order, "dtype": dtype}
    facts["shape"] = list(shape)
    for word, (attribute, usual) in _OPTIONAL.items():
        value = getattr(entry, attribute)
        if value != usual:
            facts[word] = value
    return facts


def entry_of(facts: dict[str, Any], *, key: str, rank: int | None = None) -> Entry:
    """The tensor an index speaks of."""
    if not isinstance(facts.get("name"), str) or facts.get("role") not in ROLE_CODES:
        raise Damaged("a name and a role")
    more = {attribute: facts.get(word, usual) for word, (attribute, usual) in _OPTIONAL.items()}
    return Entry(
        name=facts["name"],
        role=facts["role"],
        shape=tuple(whole_number(size, "a size") for size in facts["shape"]),
        dtype=str(facts["dtype"]),
        order=whole_number(facts["order"], "an order"),
        rank=rank,
        key=key,
        **more,
    )
