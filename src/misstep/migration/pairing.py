"""Which parameter of one network is which of the other.

Layer by layer, because a layer is what two programs agree on. The signals, in the order they decide:

    the map file      what the user says
    values            the same numbers on both sides, in whatever order they lie
    names             one spelling for both; indices count only where both sides have the same ones
    graph position    the best common order of layers with the same shapes and kind; execution order where it is known

Definition order alone is never trusted, and neither is a name whose shapes do not fit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from misstep.compare.mapfile import NameMap
from misstep.compare.names import HEADS, canonical_type
from misstep.errors import nearest
from misstep.migration.frameworks.base import Array, Param
from misstep.migration.layouts import fingerprint, layout_between, layout_of_values
from misstep.migration.params import Inventory
from misstep.migration.words import NO_COUNTERPART, NORMS, path_words, torch_leaf

How = Literal["map", "values", "name", "position", "part"]


@dataclass(frozen=True, slots=True)
class Match:
    """Two parameters that are the same thing."""

    left: Param
    right: Param
    how: How
    layout: str = ""
    """How the left array must be turned to lie like the right one."""
    fits: bool = True
    """False when the names say so and the shapes do not."""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A parameter without a partner, and the nearest thing to one."""

    param: Param
    expected: bool = False
    """The other framework has no such thing (num_batches_tracked)."""
    suggestion: str = ""


@dataclass(slots=True)
class Pairing:
    """Two inventories side by side."""

    left: Inventory
    right: Inventory
    matches: list[Match] = field(default_factory=list)
    only_left: list[Unmatched] = field(default_factory=list)
    only_right: list[Unmatched] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Everything has a partner of a fitting shape, but for what the other framework does not have."""
        return all(one.fits for one in self.matches) and all(
            one.expected for one in (*self.only_left, *self.only_right)
        )

    @property
    def layers(self) -> dict[str, str]:
        """Layers whose parameters were paired: left path → right path."""
        return {_owner(one.left.name): _owner(one.right.name) for one in self.matches if one.fits}


def _constant(one: Param) -> bool:
    """MindSpore's normalisations without `affine` keep their ones and zeros as parameters that nothing trains."""
    return one.layer in NORMS and one.trainable is False and _leaf(one.name) in ("gamma", "beta")


@dataclass(frozen=True, slots=True)
class _Layer:
    path: str
    words: tuple[str, ...]
    kind: str
    params: tuple[Param, ...]

    def leaves(self) -> dict[str, Param]:
        return {torch_leaf(_leaf(one.name), one.layer): one for one in self.params}


def pair(
    left: Inventory,
    right: Inventory,
    *,
    names: NameMap | None = None,
    values: bool = False,
    order: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Pairing:
    """Pair two inventories.

    `values` lets equal numbers decide; `order` gives the layers of both sides as they ran.

    >>> pair(read_inventory("a.pth"), read_inventory("b.ckpt"), values=True).only_right
    """
    work = _Work(left, right)
    if names is not None:
        work.by_map(names)
    if values:
        work.by_values()
    if order is not None:
        work.in_order(order)
    work.by_name(trusted=True)
    work.by_position()
    work.by_name(trusted=False)
    return work.done()


class _Work:
    def __init__(self, left: Inventory, right: Inventory) -> None:
        self.pairing = Pairing(left, right)
        self.free_left = {one.name: one for one in left.weights}
        self.free_right = {one.name: one for one in right.weights}
        self.order_left = list(dict.fromkeys(_owner(one.name) for one in left.weights))
        self.order_right = list(dict.fromkeys(_owner(one.name) for one in right.weights))

    def in_order(self, order: tuple[Sequence[str], Sequence[str]]) -> None:
        """Layers as they ran; those that did not stay behind, as they were defined."""
        self.order_left = _ran_first(self.order_left, order[0])
        self.order_right = _ran_first(self.order_right, order[1])

    def by_map(self, names: NameMap) -> None:
        for one in list(self.free_left.values()):
            wanted = names.right_name(one.name)
            other = self.free_right.get(wanted) if wanted is not None else None
            if other is not None:
                self._match(one, other, "map", names.layout(one.name))
        for side, free in (("left", self.free_left), ("right", self.free_right)):
            for name in [name for name in free if names.ignores(name, side=side)]:
                del free[name]

    def by_values(self) -> None:
        """Equal numbers: unique on both sides, and turned the way that makes them equal."""
        prints_right: dict[object, list[Param]] = defaultdict(list)
        for one in self.free_right.values():
            prints_right[_print(one)].append(one)
        prints_left = Counter(_print(one) for one in self.free_left.values())
        for one in list(self.free_left.values()):
            mark = _print(one)
            partners = prints_right.get(mark, [])
            if mark is None or len(partners) != 1 or prints_left[mark] != 1:
                continue
            layout = layout_of_values(_array(one), _array(partners[0]))
            if layout is not None:
                self._match(one, partners[0], "values", layout)
        self._rest_of_layers()

    def by_name(self, *, trusted: bool) -> None:
        layers_left, layers_right = self._layers()
        head_left, head_right = _heads(layers_left, layers_right)
        known: dict[tuple[str, ...], list[_Layer]] = defaultdict(list)
        for layer in layers_right:
            known[layer.words[head_right:]].append(layer)
        steady = _steady_indices(
            [layer.words[head_left:] for layer in layers_left], [layer.words[head_right:] for layer in layers_right]
        )
        for layer in layers_left:
            words = layer.words[head_left:]
            others = known.get(words, [])
            if len(others) != 1:
                continue
            fits = _fit(layer, others[0])
            if trusted and not (fits and steady(words)):
                continue
            self._pair_layers(layer, others[0], "name", fitting=trusted)

    def by_position(self) -> None:
        """The common order with the highest score: shapes and kind must fit, equal words of the path add to it."""
        left, right = self._layers()
        left = sorted(left, key=lambda layer: self.order_left.index(layer.path))
        right = sorted(right, key=lambda layer: self.order_right.index(layer.path))
        for one, other in _best_order(left, right):
            self._pair_layers(one, other, "position", fitting=True)

    def done(self) -> Pairing:
        place = {one.name: at for at, one in enumerate(self.pairing.left.weights)}
        self.pairing.matches.sort(key=lambda one: place[one.left.name])
        for mine, others, into in (
            (self.free_left, self.free_right, self.pairing.only_left),
            (self.free_right, self.free_left, self.pairing.only_right),
        ):
            for one in mine.values():
                expected = _leaf(one.name) in NO_COUNTERPART or _constant(one)
                into.append(Unmatched(one, expected, "" if expected else _suggestion(one, others)))
        return self.pairing

    def _rest_of_layers(self) -> None:
        """What is left of layers that equal values paired: constants such as fresh biases have no print."""
        partners: dict[str, Counter[str]] = defaultdict(Counter)
        for one in self.pairing.matches:
            partners[_owner(one.left.name)][_owner(one.right.name)] += 1
        left, right = self._layers()
        by_path = {layer.path: layer for layer in right}
        for layer in left:
            chosen = partners.get(layer.path)
            other = by_path.get(chosen.most_common(1)[0][0]) if chosen else None
            if other is not None:
                self._pair_layers(layer, other, "values", fitting=True)

    def _pair_layers(self, layer: _Layer, other: _Layer, how: How, *, fitting: bool) -> None:
        theirs = other.leaves()
        for leaf, one in layer.leaves().items():
            partner = theirs.get(leaf)
            if partner is None:
                continue
            layout = layout_between(one.shape, partner.shape, leaf)
            if layout is not None:
                self._match(one, partner, how, layout)
            elif not fitting:
                self._match(one, partner, how, fits=False)

    def _match(self, one: Param, other: Param, how: How, layout: str = "", *, fits: bool = True) -> None:
        if layout == "" and one.shape != other.shape and fits:
            layout = layout_between(one.shape, other.shape, torch_leaf(_leaf(one.name), one.layer)) or ""
            fits = layout != ""
        self.pairing.matches.append(Match(one, other, how, layout, fits))
        del self.free_left[one.name], self.free_right[other.name]

    def _layers(self) -> tuple[list[_Layer], list[_Layer]]:
        return _grouped(self.free_left), _grouped(self.free_right)


def _grouped(free: Mapping[str, Param]) -> list[_Layer]:
    groups: dict[str, list[Param]] = defaultdict(list)
    for one in free.values():
        if _leaf(one.name) not in NO_COUNTERPART:
            groups[_owner(one.name)].append(one)
    return [
        _Layer(path, path_words(path), canonical_type(params[0].layer), tuple(params))
        for path, params in groups.items()
    ]


def _fit(one: _Layer, other: _Layer) -> bool:
    """The same kind of layer, as far as known, with every parameter of the smaller in a shape of the other's."""
    if one.kind and other.kind and not _same_kind(one.kind, other.kind):
        return False
    mine, theirs = one.leaves(), other.leaves()
    common = mine.keys() & theirs.keys()
    if not common or len(common) < min(len(mine), len(theirs)):
        return False
    return all(layout_between(mine[leaf].shape, theirs[leaf].shape, leaf) is not None for leaf in common)


def _same_kind(one: str, other: str) -> bool:
    """Native words must agree; a class of the user's own may stand for anything."""
    native = {"linear", "conv", "batchnorm", "layernorm", "embedding", "lstm", "gru", "groupnorm", "prelu", "attention"}
    return one == other or one not in native or other not in native


def _best_order(left: Sequence[_Layer], right: Sequence[_Layer]) -> list[tuple[_Layer, _Layer]]:
    if not left or not right:
        return []
    score = np.zeros((len(left) + 1, len(right) + 1))
    gain = np.zeros((len(left), len(right)))
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            if _fit(one, other):
                whole = len(one.leaves()) == len(other.leaves())
                gain[i, j] = 1 + 0.5 * whole + 0.4 * _alike(one.words, other.words)
            score[i + 1, j + 1] = max(score[i, j + 1], score[i + 1, j], score[i, j] + gain[i, j])
    found = []
    i, j = len(left), len(right)
    while i and j:
        if gain[i - 1, j - 1] and score[i, j] == score[i - 1, j - 1] + gain[i - 1, j - 1]:
            i, j = i - 1, j - 1
            found.append((left[i], right[j]))
        elif score[i, j] == score[i - 1, j]:
            i -= 1
        else:
            j -= 1
    return found[::-1]


def _alike(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    mine = {word for word in one if not word.isdigit()}
    theirs = {word for word in other if not word.isdigit()}
    return len(mine & theirs) / max(1, len(mine | theirs))


def _heads(left: Sequence[_Layer], right: Sequence[_Layer]) -> tuple[int, int]:
    """How many first words only one side puts in front of everything: `model.`, `backbone.`, `net.encoder.`."""
    theirs = {layer.words for layer in right}
    known = {(word,) for word in HEADS}
    best, most = (0, 0), sum(layer.words in theirs for layer in left)
    for mine, others, swap in ((left, right, False), (right, left, True)):
        plain = {layer.words for layer in others}
        for cut in (1, 2, 3):
            heads = {layer.words[:cut] for layer in mine}
            free = all(len(layer.words) > cut or layer.words[:1] in known for layer in mine)
            if len(heads) == 1 and free:
                fitting = sum(layer.words[cut:] in plain for layer in mine)
                if fitting > most:
                    best, most = ((0, cut) if swap else (cut, 0)), fitting
    return best


def _steady_indices(
    left: Sequence[tuple[str, ...]], right: Sequence[tuple[str, ...]]
) -> Callable[[tuple[str, ...]], bool]:
    """Whether every index in a path may be trusted: both sides have the same indices below the same words.

    A Sequential with the activations in it counts 0, 2, 4 where one without counts 0, 1, 2.
    """

    def indices(paths: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], set[str]]:
        found: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for words in paths:
            for at, word in enumerate(words):
                if word.isdigit():
                    found[words[:at]].add(word)
        return found

    mine, theirs = indices(left), indices(right)
    return lambda words: all(
        mine[words[:at]] == theirs.get(words[:at]) for at, word in enumerate(words) if word.isdigit()
    )


def _suggestion(one: Param, others: Mapping[str, Param]) -> str:
    """The free parameter of the other side that fits in shape, nearest in name; else the nearest name."""
    leaf = torch_leaf(_leaf(one.name), one.layer)
    fitting = [name for name, other in others.items() if layout_between(one.shape, other.shape, leaf) is not None]
    if not fitting:
        return ""
    words = nearest(one.name, fitting, most=1)
    return words.removeprefix("; did you mean ").removesuffix("?") if "did you mean" in words else fitting[0]


def _print(one: Param) -> object:
    return fingerprint(one.fetch()) if one.fetch is not None and not one.dtype.startswith(("int", "bool")) else None


def _array(one: Param) -> Array:
    assert one.fetch is not None
    return one.fetch()


def _ran_first(defined: Sequence[str], ran: Sequence[str]) -> list[str]:
    known = set(defined)
    first = [path for path in dict.fromkeys(ran) if path in known]
    return [*first, *(path for path in defined if path not in set(first))]


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]
