"""Which tensor of the left is which of the right.

Four ways, each for what the one before left over: the user's map · the same name · the same name in one spelling
(`names.py`) · the same place in the execution order, by type and shape. The last is a longest common subsequence in
which the nodes already paired are fixed points; with a row of bits per node it takes milliseconds for thousands.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from misstep.compare.mapfile import NameMap
from misstep.compare.names import canonical, canonical_type, ignorable, last_word, owner, without_heads
from misstep.store.checkpoint.record import section_of
from misstep.store.foreign.source import PARAMETER_LEAVES, Entry

How = Literal["map", "name", "rule", "order"]

_AT_REST = frozenset({"param", "buffer", "grad"})
"""Roles of tensors that belong to a module but are no event in the execution order."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tensors that are meant to be the same, and why we think so."""

    left: Entry
    right: Entry
    how: How
    layout: str = ""


@dataclass(slots=True)
class Alignment:
    """The pairs, in the left side's order, and what found no partner."""

    pairs: list[Pair] = field(default_factory=list)
    only_left: list[Entry] = field(default_factory=list)
    only_right: list[Entry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Node:
    """Everything a source holds of one call of one node."""

    key: tuple[str, int]
    entries: tuple[Entry, ...]
    at_rest: bool


def align(left: Sequence[Entry], right: Sequence[Entry], *, names: NameMap | None = None) -> Alignment:
    """Pair up two collections.

    >>> align(a.entries(), b.entries()).only_left
    """
    names = names or NameMap()
    left = [entry for entry in left if not names.ignores(entry.name, side="left")]
    right = [entry for entry in right if not names.ignores(entry.name, side="right")]
    work = _Work(left, right, steps=_steps_to_pair_by(left, right))

    mapped = {entry.name: names.right_name(entry.name) for entry in left}
    work.pair_by("map", lambda name: mapped.get(name) or f"\0{name}", lambda name: name)
    work.pair_by("name", str, str)
    work.pair_by("rule", canonical, canonical)
    work.pair_by("rule", without_heads, without_heads)
    head_left, head_right = work.common_prefix()
    if head_left or head_right:
        work.pair_by(
            "rule",
            lambda name: without_heads(name).removeprefix(head_left),
            lambda name: without_heads(name).removeprefix(head_right),
        )
    for words in (4, 3, 2):
        work.pair_by("rule", partial(_ending, words=words, side="left"), partial(_ending, words=words, side="right"))
    work.pair_by_order()
    return work.done(names)


def _ending(name: str, *, words: int, side: str) -> str:
    """The last words of a name, `attn.norm.weight`; a shorter name ends in nothing that another does."""
    parts = without_heads(name).split(".")
    return ".".join(parts[-words:]) if len(parts) >= words else f"\0{side}{name}"


def one_step_each(left: Sequence[Entry], right: Sequence[Entry]) -> bool:
    """Whether two different steps are laid side by side: `run@1` and `run@2`, each with the weights it began with."""
    ours, theirs = ({entry.step for entry in side if entry.step is not None} for side in (left, right))
    return all(steps and max(steps) - min(steps) <= 1 for steps in (ours, theirs)) and max(ours) != max(theirs)


def _steps_to_pair_by(left: Sequence[Entry], right: Sequence[Entry]) -> dict[int, int | None]:
    """By id of an entry: what counts as its step."""
    if one_step_each(left, right):
        last = [max(entry.step for entry in side if entry.step is not None) for side in (left, right)]
        return {
            id(entry): None if entry.step is None else entry.step - end
            for side, end in zip((left, right), last)
            for entry in side
        }
    by_step = _by_step({entry.step for entry in left}, {entry.step for entry in right})
    return {id(entry): entry.step if by_step else None for side in (left, right) for entry in side}


def _by_step(left: set[int | None], right: set[int | None]) -> bool:
    """Whether a step belongs to the step of the same number: not when one side has a single step of its own."""
    several = max(len(left), len(right)) > 1
    return several and (min(len(left), len(right)) > 1 or not left.isdisjoint(right))


class _Work:
    """What is paired so far, and what is still free."""

    def __init__(self, left: Sequence[Entry], right: Sequence[Entry], *, steps: dict[int, int | None]) -> None:
        self.left, self.right = list(left), list(right)
        self.free_left = dict.fromkeys(range(len(left)))
        self.free_right = dict.fromkeys(range(len(right)))
        self.found: list[tuple[int, int, How]] = []
        self._steps = steps

    def pair_by(self, how: How, name_left: Callable[[str], str], name_right: Callable[[str], str]) -> None:
        """Pair what gets the same name; a name that several get pairs none of them."""
        places: dict[Hashable, list[int]] = defaultdict(list)
        for index in self.free_right:
            places[self._identity(self.right[index], name_right)].append(index)
        wanted: dict[Hashable, list[int]] = defaultdict(list)
        for index in self.free_left:
            wanted[self._identity(self.left[index], name_left)].append(index)
        for identity, ours in wanted.items():
            theirs = places.get(identity, ())
            if len(ours) == len(theirs) == 1 or (how == "name" and len(ours) == len(theirs)):
                for one, other in zip(ours, theirs):
                    self._pair(one, other, how)

    def common_prefix(self) -> tuple[str, str]:
        """A scope only one side has around everything: ('', 'wrapper.') or the reverse."""
        left = {without_heads(self.left[index].name) for index in self.free_left}
        right = {without_heads(self.right[index].name) for index in self.free_right}
        for ours, theirs, swap in ((left, right, False), (right, left, True)):
            heads: Counter[str] = Counter()
            for name in theirs:
                words = name.split(".")
                for cut in range(1, min(len(words), 4)):
                    if ".".join(words[cut:]) in ours:
                        heads[".".join(words[:cut]) + "."] += 1
            if heads:
                head, times = heads.most_common(1)[0]
                if times >= max(2, len(ours) // 2):
                    return (head, "") if swap else ("", head)
        return "", ""

    def pair_by_order(self) -> None:
        """Longest common subsequence of what runs, then of what rests, on ever weaker descriptions."""
        descriptions: tuple[Callable[[_Node], Hashable | None], ...] = (_type_and_shapes, _shapes_only, _type_only)
        for at_rest in (False, True):
            for describe in descriptions:
                if self.free_left and self.free_right:
                    self._order_pass(describe, at_rest=at_rest)
            if not at_rest:
                self._parameters_of_paired_modules()

    def done(self, names: NameMap) -> Alignment:
        self.found.sort()
        pairs = []
        for ours, theirs, how in self.found:
            one, other = self.left[ours], self.right[theirs]
            pairs.append(Pair(one, other, how, names.layout(one.name) or _layout(one, other)))
        return Alignment(
            pairs,
            [self.left[index] for index in sorted(self.free_left)],
            [self.right[index] for index in sorted(self.free_right)],
        )

    def _pair(self, ours: int, theirs: int, how: How) -> None:
        del self.free_left[ours]
        del self.free_right[theirs]
        self.found.append((ours, theirs, how))

    def _identity(self, entry: Entry, name: Callable[[str], str]) -> Hashable:
        role = "param" if entry.role == "buffer" else entry.role
        return (name(entry.name), entry.call, role, entry.slot, self._steps[id(entry)], entry.rank)

    def _order_pass(self, describe: Callable[[_Node], Hashable | None], *, at_rest: bool) -> None:
        fixed_left: dict[tuple[str, int], Hashable] = {}
        fixed_right: dict[tuple[str, int], Hashable] = {}
        for number, (ours, theirs, _) in enumerate(self.found):
            mine, yours = self.left[ours], self.right[theirs]
            if (mine.role in _AT_REST) == at_rest:
                fixed_left.setdefault((mine.name, mine.call), ("paired", number))
                fixed_right.setdefault((yours.name, yours.call), fixed_left[mine.name, mine.call])
        nodes_left = _nodes(self.left, self.free_left, fixed_left, at_rest=at_rest)
        nodes_right = _nodes(self.right, self.free_right, fixed_right, at_rest=at_rest)
        words_left = [fixed_left.get(node.key) or describe(node) for node in nodes_left]
        words_right = [fixed_right.get(node.key) or describe(node) for node in nodes_right]
        place_left = {id(self.left[index]): index for index in self.free_left}
        place_right = {id(self.right[index]): index for index in self.free_right}
        for one_at, other_at in common_order(words_left, words_right):
            partners = {(entry.role, entry.slot): entry for entry in nodes_right[other_at].entries}
            for entry in nodes_left[one_at].entries:
                partner = partners.get((entry.role, entry.slot))
                if partner is None or not _plausible(entry, partner):
                    continue
                one, other = place_left.get(id(entry)), place_right.get(id(partner))
                if one is not None and other is not None and one in self.free_left and other in self.free_right:
                    self._pair(one, other, "order")

    def _parameters_of_paired_modules(self) -> None:
        """`norm_a.gamma` is `bn1.weight` when the modules were paired by their place."""
        other_name = {
            self.left[ours].name: self.right[theirs].name for ours, theirs, how in self.found if how == "order"
        }
        if not other_name:
            return
        places = {
            (owner(self.right[index].name), last_word(self.right[index].name), self.right[index].role): index
            for index in self.free_right
            if self.right[index].role in _AT_REST
        }
        for index in list(self.free_left):
            entry = self.left[index]
            if entry.role in _AT_REST:
                found = places.get((other_name.get(owner(entry.name), ""), last_word(entry.name), entry.role))
                if found is not None and found in self.free_right:
                    self._pair(index, found, "order")


def common_order(left: Sequence[Hashable | None], right: Sequence[Hashable | None]) -> list[tuple[int, int]]:
    """The longest row of equal words that keeps the order of both sides; None equals nothing.

    Bit-parallel (Hyyrö 2004): one integer of len(right) bits per word of the left, so 5,000 against 5,000 words is
    5,000 additions of 625-byte integers and 3 MB, where a table would have 25 million cells.
    """
    masks: dict[Hashable, int] = {}
    for at, word in enumerate(right):
        if word is not None:
            masks[word] = masks.get(word, 0) | 1 << at
    full = (1 << len(right)) - 1
    row, rows = full, []
    for word in left:
        hit = row & masks.get(word, 0)
        row = (row + hit | row - hit) & full
        rows.append(row)
    pairs = []
    i, j = len(left), len(right)
    while i and j:
        if rows[i - 1] >> (j - 1) & 1:
            j -= 1
        elif i > 1 and not rows[i - 2] >> (j - 1) & 1:
            i -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def _nodes(
    entries: Sequence[Entry], free: dict[int, None], fixed: dict[tuple[str, int], Hashable], *, at_rest: bool
) -> list[_Node]:
    grouped: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for index, entry in enumerate(entries):
        if (entry.role in _AT_REST) == at_rest and (index in free or (entry.name, entry.call) in fixed):
            grouped[entry.name, entry.call].append(entry)
    order = sorted(grouped, key=lambda key: grouped[key][-1].order)
    return [_Node(key, tuple(grouped[key]), at_rest) for key in order]


def _type_and_shapes(node: _Node) -> Hashable | None:
    kind = last_word(node.key[0]) if node.at_rest else canonical_type(node.entries[0].node_type)
    return (kind, _shapes(node)) if kind else None


def _shapes_only(node: _Node) -> Hashable | None:
    return _shapes(node)


def _type_only(node: _Node) -> Hashable | None:
    kind = "" if node.at_rest else canonical_type(node.entries[0].node_type)
    return kind or None


def _shapes(node: _Node) -> Hashable:
    wanted = [entry for entry in node.entries if entry.role in ("output", "loss")] or node.entries
    return tuple((entry.role, entry.slot, _squeezed(entry.shape)) for entry in wanted)


def _plausible(left: Entry, right: Entry) -> bool:
    """False where shape and place agree but the words say they are two things: a bias and a running mean."""
    if left.role not in _AT_REST:
        return True
    if ignorable(left.name) or ignorable(right.name):
        return False
    one, other = last_word(left.name), last_word(right.name)
    known = one in PARAMETER_LEAVES and other in PARAMETER_LEAVES
    return (not known or one == other) and section_of(left.name) == section_of(right.name)


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _layout(left: Entry, right: Entry) -> str:
    """How the right array must be turned, where a rule says so: axes of length one, and Keras' kernels."""
    if left.shape == right.shape:
        return ""
    if left.role in _AT_REST and _squeezed(left.shape) == _squeezed(right.shape):
        return "reshape"
    words = {left.name.rsplit(".", 1)[-1], right.name.rsplit(".", 1)[-1]}
    if words == {"weight", "kernel"} and left.shape == right.shape[::-1]:
        return "transpose"
    return ""
