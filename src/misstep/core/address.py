"""One name for every tensor at every moment, written the same way everywhere.

    encoder.0.attn~2:output.1@120#3
    node           call role slot step rank

The parts behind the node may be missing. In an *address* a missing call or slot is the first one; in a *pattern* every
missing part matches anything, and the node may hold globs: `encoder.*:grad`, `*/log:output@100:200`.

The call counts how often the node ran in the step, from 1: a module called twice owns `fc:output` and `fc~2:output`.
Operators live below the module that ran them, behind a slash: `encoder.0/log:output`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from misstep.errors import AddressError, nearest

Role = Literal["input", "output", "grad_input", "grad_output", "param", "grad", "buffer", "loss"]
Category = Literal["weight", "gradient", "activation", "tensor"]

ROLES: tuple[Role, ...] = get_args(Role)
"""In the order of their codes in the statistics file; append only."""

ROLE_CODES: dict[str, int] = {role: code for code, role in enumerate(ROLES)}

ROLES_OF_CATEGORY: dict[Category, frozenset[Role]] = {
    "weight": frozenset({"param"}),
    "gradient": frozenset({"grad", "grad_input", "grad_output"}),
    "activation": frozenset({"output"}),
    "tensor": frozenset(ROLES),
}
"""Classified by role, not by name, so that BatchNorm and embedding weights count as weights."""

_PARTS = re.compile(
    r"""(?P<node>[^:@\#~]*?)
        (?:~(?P<call>[^:@\#]*))?
        (?::(?P<role>[^@\#.\[]*)(?:\.(?P<slot>[^@\#]*))?)?
        (?:@(?P<step>[^\#]*))?
        (?:\#(?P<rank>.*))?""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """The name of one tensor at one moment.

    >>> Address.parse("encoder.0.attn:output.1@120#3")
    Address(node='encoder.0.attn', role='output', slot=1, step=120, rank=3, call=1)
    """

    node: str
    role: Role = "output"
    slot: int = 0
    step: int | None = None
    rank: int | None = None
    call: int = 1

    @classmethod
    def parse(cls, text: str) -> Address:
        parts = _split(text)
        if not parts["node"]:
            raise AddressError(f"{text!r} names no node; an address looks like encoder.0:output@120", address=text)
        if _has_glob(parts["node"]):
            raise AddressError(f"{text!r} is a pattern; here one tensor must be named, without * ? [", address=text)
        role = _role(parts["role"] or "output", text)
        return cls(
            node=parts["node"],
            role=role,
            slot=_number(parts["slot"], "slot", text) or 0,
            step=_number(parts["step"], "step", text),
            rank=_number(parts["rank"], "rank", text),
            call=_call(parts["call"], text) or 1,
        )

    def at(self, *, step: int | None = None, rank: int | None = None) -> Address:
        """The same tensor at another step or on another rank."""
        return replace(self, step=self.step if step is None else step, rank=self.rank if rank is None else rank)

    def __str__(self) -> str:
        text = self.node
        if self.call > 1:
            text += f"~{self.call}"
        text += f":{self.role}"
        if self.slot:
            text += f".{self.slot}"
        if self.step is not None:
            text += f"@{self.step}"
        if self.rank is not None:
            text += f"#{self.rank}"
        return text


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which tensors are meant: globs in the node, and a missing part matches anything.

    >>> Pattern.parse("encoder.*:grad").matches(Address.parse("encoder.0.fc:grad@7"))
    True
    """

    node: str = "*"
    role: Role | None = None
    slot: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    rank: int | None = None
    call: int | None = None

    @classmethod
    def parse(cls, text: str) -> Pattern:
        parts = _split(text)
        role_text = parts["role"]
        role = _role(role_text, text) if role_text and role_text != "*" else None
        first, last = _steps(parts["step"], text)
        try:
            _glob(parts["node"])
        except AddressError as error:
            raise AddressError(str(error), address=text) from None
        return cls(
            node=parts["node"] or "*",
            role=role,
            slot=_number(parts["slot"], "slot", text) if parts["slot"] != "*" else None,
            first_step=first,
            last_step=last,
            rank=_number(parts["rank"], "rank", text),
            call=_call(parts["call"], text),
        )

    def matches(self, address: Address) -> bool:
        """True when every given part fits; a step or rank the address does not have fits any."""
        return (
            (self.role is None or self.role == address.role)
            and (self.slot is None or self.slot == address.slot)
            and (self.call is None or self.call == address.call)
            and (self.rank is None or address.rank is None or self.rank == address.rank)
            and (address.step is None or self.includes_step(address.step))
            and self.matches_node(address.node)
        )

    def matches_node(self, node: str) -> bool:
        return self.node == "*" or _glob(self.node).fullmatch(node) is not None

    def includes_step(self, step: int) -> bool:
        return (self.first_step is None or step >= self.first_step) and (
            self.last_step is None or step <= self.last_step
        )

    def __str__(self) -> str:
        text = self.node
        if self.call is not None:
            text += f"~{self.call}"
        if self.role is not None or self.slot is not None:
            text += f":{self.role or '*'}"
        if self.slot is not None:
            text += f".{self.slot}"
        if self.first_step is not None or self.last_step is not None:
            first = "" if self.first_step is None else str(self.first_step)
            last = "" if self.last_step is None else str(self.last_step)
            text += f"@{first}" if first == last else f"@{first}:{last}"
        if self.rank is not None:
            text += f"#{self.rank}"
        return text


def _split(text: str) -> dict[str, str]:
    found = _PARTS.fullmatch(text.strip())
    if found is None or not text.strip():
        raise AddressError(
            f"cannot read the address {text!r}; it looks like encoder.0:output.1@120#3 (node:role.slot@step#rank)",
            address=text,
        )
    return {name: part if part is not None else "" for name, part in found.groupdict().items()}


def _role(role: str, text: str) -> Role:
    if role not in ROLE_CODES:
        raise AddressError(
            f"unknown role {role!r} in {text!r}; roles are {', '.join(ROLES)}{nearest(role, ROLES)}", address=text
        )
    return role  # type: ignore[return-value]


def _number(part: str, name: str, text: str) -> int | None:
    if part in ("", "*"):
        return None
    if not part.isdecimal():
        raise AddressError(f"the {name} in {text!r} is {part!r}, not a number", address=text)
    return int(part)


def _call(part: str, text: str) -> int | None:
    call = _number(part, "call", text)
    if call == 0:
        raise AddressError(f"the call in {text!r} is 0; calls count from 1", address=text)
    return call


def _steps(part: str, text: str) -> tuple[int | None, int | None]:
    if ":" not in part:
        step = _number(part, "step", text)
        return step, step
    start, _, end = part.partition(":")
    first, last = _number(start, "first step", text), _number(end, "last step", text)
    if first is not None and last is not None and last < first:
        raise AddressError(f"the range of steps in {text!r} ends at {last}, before it starts at {first}", address=text)
    return first, last


def _has_glob(node: str) -> bool:
    return any(mark in node for mark in "*?[")


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` matches any run of characters, dots and slashes too; `?` one; `[abc]` one of them."""
    out = []
    i = 0
    while i < len(pattern):
        mark = pattern[i]
        if mark == "*":
            out.append(".*")
        elif mark == "?":
            out.append(".")
        elif mark == "[" and (end := pattern.find("]", i + (3 if pattern[i + 1 : i + 2] == "!" else 2))) > 0:
            inside = pattern[i + 1 : end]
            negated = inside.startswith("!")
            # Only the hyphen keeps a meaning; whatever else regular expressions read into a set is a letter here.
            letters = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
            out.append(f"[{'^' if negated else ''}{letters}]")
            i = end
        else:
            out.append(re.escape(mark))
        i += 1
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        raise AddressError(f"the brackets in {pattern!r} name nothing; ranges go up: [0-9]", address=pattern) from None
