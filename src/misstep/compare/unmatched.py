"""Watchpoints that look at nothing: said at once, with the names that come nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from misstep.core.address import Address
from misstep.core.watching.conditions import CONDITIONS
from misstep.core.watching.family import Member
from misstep.core.watching.selection import TensorTable
from misstep.core.watching.watch import Watchpoint
from misstep.core.watching.watchtext import parse_watch

ACTIVATIONS = ("ReLU", "ReLU6", "ReLUV2", "LeakyReLU", "LeakyReLUExt", "PReLU", "Elu", "EluExt", "SeLU", "CeLU", "GeLU",
    "GeluExt", "FastGeLU", "SiLU", "Mish", "Sigmoid", "LogSigmoid", "Tanh", "Softplus", "SoftplusExt", "Softsign",
    "HSwish", "HSigmoid", "HShrink", "SoftShrink", "Hardtanh", "GLU", "Softmax", "LogSoftmax", "Swish", "GELU",
    "Hardswish", "Hardsigmoid", "ELU", "SELU", "CELU")  # fmt: skip
"""What activation functions are called in a dump of operators, where every operator has an output."""


def of_operators(watch: Watchpoint) -> Watchpoint:
    """The watchpoint as it is meant over a dump of operators: an activation is what an activation function made."""
    condition = CONDITIONS.get(watch.condition)
    if condition is None or condition.category != "activation" or watch.types or watch.on or watch.nodes:
        return watch
    return replace(watch, types=ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A watchpoint that looks at nothing, and what there is instead."""

    watch: str
    near: tuple[str, ...]
    roles: tuple[str, ...]


def unmatched(watchpoints: Iterable[Watchpoint | str], known: Sequence[tuple[Address, str]]) -> list[Unmatched]:
    """The watchpoints none of these tensors fits, of (address, type of its node)."""
    table = TensorTable()
    for at, (address, kind) in enumerate(known):
        table.put(at, address, kind)
    names = list(dict.fromkeys(address.node for address, _ in known))
    roles = tuple(dict.fromkeys(address.role for address, _ in known))
    found = []
    for given in watchpoints:
        watch = parse_watch(given) if isinstance(given, str) else given
        if not Member(watch).selection.everywhere(table).any():
            wanted = watch.on[0].node if watch.on else ""
            found.append(Unmatched(str(given), tuple(near(wanted, names)), roles))
    return found


def near(pattern: str, names: Sequence[str], *, most: int = 3) -> list[str]:
    """The names that come nearest to a pattern.

    >>> near("encoder.fc*", ["encoders.fc1", "head"])
    ['encoders.fc1']
    """
    plain = pattern.replace("*", "").strip(".")
    close = difflib.get_close_matches(plain, names, n=most, cutoff=0.5)
    inside = [name for name in names if plain and plain.rsplit(".", 1)[-1].lower() in name.lower()]
    return list(dict.fromkeys([*close, *inside]))[:most] or list(names[:most])
