"""Which call of the right network is which of the left: by paired parameters, then by kind and order of execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misstep.compare.align import common_order
from misstep.compare.names import canonical_type
from misstep.migration.frameworks.base import Call

_SYNONYMS = {
    "hardswish": "hswish",
    "hardsigmoid": "hsigmoid",
    "selu": "selu",
    "upsamplingnearest": "upsample",
    "convtranspose": "convtranspose",
    "identity": "identity",
    "crossentropyloss": "crossentropyloss",
}


def kind_of(call: Call) -> str:
    """The kind of layer in one spelling: `linear` for Linear and Dense."""
    kind = canonical_type(call.type)
    if kind.startswith("conv") and kind.endswith("transpose"):  # Conv2dTranspose
        kind = "convtranspose"
    return _SYNONYMS.get(kind, kind)


def pair_calls(left: Sequence[Call], right: Sequence[Call], layers: Mapping[str, str]) -> dict[int, int]:
    """Left call number → right call number.

    `layers` are the layers whose parameters were paired. What has no parameters must be of the same kind, in the order
    of execution, between neighbours that are paired.
    """
    place = {(call.path, call.number): at for at, call in enumerate(right)}
    found: dict[int, int] = {}
    for at, call in enumerate(left):
        partner = place.get((layers.get(call.path, "\0"), call.number)) if call.path else None
        if partner is not None:
            found[at] = partner
    for with_size in (True, False):  # a pool with another stride is still the pool
        taken = set(found.values())
        words_left = [("pair", found[at]) if at in found else _word(call, with_size) for at, call in enumerate(left)]
        words_right = [("pair", at) if at in taken else _word(call, with_size) for at, call in enumerate(right)]
        for one, other in common_order(words_left, words_right):
            if one not in found and other not in taken:
                found[one] = other
    return found


def units(left: Sequence[Call], pairs: Mapping[int, int]) -> list[int]:
    """The innermost paired calls: what is compared as a whole, while everything around is looked through."""
    outer: set[int] = set()
    for at in pairs:
        above = left[at].parent
        while above >= 0:
            outer.add(above)
            above = left[above].parent
    return [at for at in sorted(pairs) if at not in outer]


def _word(call: Call, with_size: bool) -> tuple[str, int] | None:
    """What a call without parameters is known by; containers and classes of the user's own are no words."""
    kind = kind_of(call)
    if not call.path or not call.native or kind in ("sequential", "modulelist", "identity"):
        return None
    return kind, call.outputs[0].size if call.outputs and with_size else 0
