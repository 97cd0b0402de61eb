"""How a call of one framework becomes a call of the other: names, order, what must be added and what cannot be said.

The same arrangement is used on values, to verify it, and on source, to write it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from misstep.migration.apimap.signatures import MISSING, Parameter, Signature, Starred

Item = TypeVar("Item")

SYNONYMS: dict[str, tuple[str, ...]] = {
    "dim": ("axis", "dims", "axes"),
    "dims": ("axis", "dim", "axes", "perm", "input_perm", "shifts_axis"),
    "dim0": ("axis0",),
    "dim1": ("axis1",),
    "source": ("src", "source"),
    "destination": ("dst",),
    "keepdim": ("keep_dims", "keepdims"),
    "input": ("x", "input_x", "logits", "tensor", "a", "condition", "inputs", "start", "input1", "x1", "z"),
    "x": ("input",),
    "other": ("y", "x2", "value", "input2", "exponent", "exp", "vec2", "w"),
    "exponent": ("other", "y", "exp"),
    "value": ("fill_value", "other", "values"),
    "fill_value": ("value",),
    "size": ("shape", "sizes", "output_size"),
    "shape": ("size",),
    "sizes": ("shape", "size"),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "tensors": ("inputs", "input", "x", "tup", "arrays"),
    "tensor": ("input", "x"),
    "indices": ("operands", "index"),
    "operands": ("operands",),
    "index": ("indices", "input_indices"),
    "src": ("source", "updates", "other"),
    "repeats": ("multiples", "dims"),
    "negative_slope": ("alpha",),
    "unbiased": ("ddof",),
    "min": ("clip_value_min", "min_value"),
    "max": ("clip_value_max", "max_value"),
    "min_val": ("min",),
    "max_val": ("max",),
    "end": ("stop",),
    "steps": ("num",),
    "n": ("num_rows", "x"),
    "m": ("num_cols",),
    "k": ("topk",),
    "weight": ("weight", "w"),
    "target": ("labels", "label", "targets"),
    "ord": ("p",),
    "mask": ("condition",),
    "batch1": ("x",),
    "mat2": ("y", "other"),
    "mat": ("x",),
    "vec": ("vec2", "x2"),
    "bins": ("bins",),
    "split_size": ("split_size_or_sections", "split_size"),
    "split_sizes": ("split_size_or_sections",),
    "padding": ("pad",),
    "pad": ("padding",),
    "approximate": ("approximate",),
    "dtype": ("output_type",),
}
"""What one side calls a parameter → what the other may call it. Suggestions only: the numbers decide."""


@dataclass(slots=True)
class Rewrite:
    """One way to say a call in the other framework."""

    target: str
    names: dict[str, str] = field(default_factory=dict)
    """Parameters that have another name there."""
    add: dict[str, Any] = field(default_factory=dict)
    """The other side's parameter → what must be spelled out because its default is another, unless it is given."""
    absent: list[str] = field(default_factory=list)
    """Parameters without a counterpart; left out where they carry their default."""
    order: list[str] = field(default_factory=list)
    """Our parameters that stand in the same place there, from the first on."""
    star: bool = False
    """The list may be, or must be, spelled one by one."""
    template: str = ""
    """Not a call but an expression: `{input}.shape[{dim}]`."""
    turn: dict[str, str] = field(default_factory=dict)
    """Our parameter → what its value becomes there, `{0}` being the value: `1 - {0}`."""
    fill: dict[str, str] = field(default_factory=dict)
    """The other side's parameter → an expression over ours, unless it is given: `{kernel_size}`."""

    @property
    def method(self) -> bool:
        return self.target.startswith(("mindspore.Tensor.", "torch.Tensor."))

    @property
    def verbatim(self) -> bool:
        """Only the name in front of the parenthesis changes."""
        return not (self.names or self.add or self.template or self.turn or self.fill)


def derive(
    ours: Signature,
    theirs: Sequence[Signature],
    given: Mapping[str, Any],
    target: str,
    words: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Rewrite]:
    """Ways to say this call there, the likeliest first; one for each overload that could take it. `words` are synonyms
    to try before the common ones."""
    method = target.startswith("mindspore.Tensor.")
    if not theirs:
        return [Rewrite(target, order=list(ours.names))]
    found = []
    for one in theirs:
        rewrite = _onto(ours, one, given, target, method=method, words=words or {})
        if rewrite is not None:
            found.append(rewrite)
    return sorted(found, key=lambda one: (len(one.names), len(one.add)))


def spelled_out(ours: Signature, rewrite: Rewrite) -> Rewrite:
    """The same with every word and flag spelled out: some of MindSpore's defaults only look like ours."""
    add = dict(rewrite.add)
    for one in ours.parameters:
        if one.name not in rewrite.absent and isinstance(one.default, bool | str) and one.default is not MISSING:
            add.setdefault(rewrite.names.get(one.name, one.name), one.default)
    return replace(rewrite, add=add)


def _onto(
    ours: Signature,
    theirs: Signature,
    given: Mapping[str, Any],
    target: str,
    *,
    method: bool,
    words: Mapping[str, tuple[str, ...]],
) -> Rewrite | None:
    mine = list(ours.parameters)
    free = {one.name: one for one in theirs.parameters}
    places: dict[str, Parameter] = {}
    if method and mine:
        mine = mine[1:]  # the receiver
    for one in mine:
        if one.name in free:
            places[one.name] = free.pop(one.name)
    for one in mine:
        if one.name not in places:
            known = (*words.get(one.name, ()), *SYNONYMS.get(one.name, ()))
            word = next((word for word in known if word in free), None)
            if word is not None:
                places[one.name] = free.pop(word)
    for at, one in enumerate(mine):
        if one.name not in places and at < len(theirs.parameters) and not one.keyword_only:
            other = theirs.parameters[at]
            if other.name in free and (one.name in given or one.required) and not other.keyword_only:
                places[one.name] = free.pop(other.name)
    skipped = {ours.parameters[0].name} if method and ours.parameters else set()
    absent = [one.name for one in mine if one.name not in places]
    for name in given:
        parameter = ours.get(name)
        if name in absent and parameter is not None and not _same(given[name], parameter.default):
            return None
    if any(one.required and one.name in free for one in theirs.parameters):
        return None
    star = any(place.star for place in places.values())
    add = {
        place.name: mine_one.default
        for mine_one in mine
        if (place := places.get(mine_one.name)) is not None and _must_add(mine_one, place)
    }
    order = _order(mine, [one for one in theirs.parameters if not one.keyword_only], places)
    first = [ours.parameters[0].name] if skipped else []
    names = {name: place.name for name, place in places.items() if name != place.name}
    return Rewrite(target, names, add, absent, [*first, *order], star)


def _order(mine: Sequence[Parameter], theirs: Sequence[Parameter], places: Mapping[str, Parameter]) -> list[str]:
    found = []
    for one, other in zip(mine, theirs):
        if one.keyword_only or places.get(one.name) != other:
            break
        found.append(one.name)
    return found


def _must_add(mine: Parameter, place: Parameter) -> bool:
    if mine.default is MISSING or mine.default is None or place.star:
        return False
    if not isinstance(mine.default, bool | int | float | str):
        return False
    return place.default is MISSING or not _same(mine.default, place.default)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    try:
        return bool(one == other)
    except (RuntimeError, ValueError, TypeError):
        return False


def arrange(given: Mapping[str, Item], rewrite: Rewrite) -> tuple[list[Item], dict[str, Item]]:
    """The arguments as the other side takes them; the receiver of a method comes first."""
    args: list[Item] = []
    keywords: dict[str, Item] = {}
    in_order = True
    for name, value in given.items():
        if name in rewrite.absent:
            continue
        at = len(args)
        if in_order and at < len(rewrite.order) and rewrite.order[at] == name:
            if isinstance(value, Starred) and not rewrite.star:
                args.append(list(value))  # type: ignore[arg-type]
            elif rewrite.star and isinstance(value, Starred | list | tuple):
                args.extend(value)
                in_order = False
            else:
                args.append(value)
        else:
            in_order = False
            keywords[rewrite.names.get(name, name)] = value
    return args, keywords
