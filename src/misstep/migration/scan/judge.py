"""One call against the map: which way of saying it holds for exactly these arguments, and what it becomes.

equivalent   only the name in front of the parenthesis changes
differs      it can be said, with other names, other values or more of them
none         every candidate was executed and failed, or there is none
uncertain    nothing was seen that covers these arguments
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from misstep.migration.apimap.signatures import MISSING, Signature, Starred
from misstep.migration.apimap.table import Entry, Known, Table, Verdict
from misstep.migration.apimap.way import token_of
from misstep.migration.scan.conventions import CONVENTIONS, Convention
from misstep.migration.scan.reading import Called, Reading

SAYS_NOTHING = frozenset(
    [
        *("inplace", "device", "foreach", "fused", "capturable", "differentiable", "size_average", "reduce"),
        *("non_blocking", "memory_format", "pin_memory", "layout", "generator", "copy"),
    ]
)
"""Parameters about how or where, not what."""


@dataclass(slots=True)
class Judged:
    """A call with its verdict."""

    called: Called
    verdict: Verdict
    reason: str = ""
    """Which sentence says why, for none and uncertain."""
    detail: str = ""
    way: Known | None = None
    convention: Convention | None = None
    given: dict[str, Any] = field(default_factory=dict)
    """Parameter → the expression it got; a Starred list of them for `view(2, -1)`."""
    lead: ast.expr | None = None
    """What an optimizer or schedule is given first: parameters, an optimizer."""

    @property
    def target(self) -> str:
        if self.way is not None:
            return self.way.rewrite.target or self.way.rewrite.template
        return self.convention.template if self.convention is not None else ""


def judge(called: Called, table: Table, reading: Reading) -> Judged:
    """Only calls of the framework have a verdict."""
    convention = CONVENTIONS.get(called.name) or _moved(called, reading)
    if convention is not None:
        return _by_convention(called, convention)
    entry = table.entries.get(called.name) or table.entries.get(_alias(called.name))
    if entry is None:
        return Judged(called, "uncertain", "not_in_map")
    if not entry.ways:
        return Judged(called, entry.verdict if entry.verdict in ("none", "uncertain") else "none", "no_way")
    if isinstance(called.node, ast.Attribute):
        return _choice(called, entry, {"input": called.receiver}, None, reading)
    lead, args, keywords = _arguments(called.node, entry)
    if keywords is None or any(isinstance(one, ast.Starred) for one in args):
        starred = _star_only(args, keywords, entry)
        if starred is None:
            return Judged(called, "uncertain", "starred")
        args, keywords = starred, {}
    bound = _bound(called, entry, args, keywords, reading)
    if bound is None:
        return Judged(called, "uncertain", "unbound")
    return _choice(called, entry, bound, lead, reading)


def _moved(called: Called, reading: Reading) -> Convention | None:
    """`x.to(device)` says nothing in MindSpore; `x.to(torch.float16)` does."""
    node = called.node
    if called.name != "torch.Tensor.to" or not isinstance(node, ast.Call) or len(node.args) != 1:
        return None
    kind = reading.kind(node.args[0])
    plain = kind.what in ("python", "own") or (kind.what == "unknown" and "device" in ast.unparse(node.args[0]))
    return Convention("{self}") if plain and not any(one.arg == "dtype" for one in node.keywords) else None


def _alias(name: str) -> str:
    return (
        name.replace("torch.nn.modules.", "torch.nn.")
        .replace("torch.functional.", "torch.")
        .replace("torch.optim.sgd.", "torch.optim.")
    )


def _by_convention(called: Called, convention: Convention) -> Judged:
    if not convention.template and not convention.drop:
        return Judged(called, "differs", convention.reason, convention=convention)
    if isinstance(called.node, ast.Call) and len(called.node.args) < convention.least:
        return Judged(called, "uncertain", "unbound")
    return Judged(called, "differs", convention=convention)


def _arguments(node: ast.Call, entry: Entry) -> tuple[ast.expr | None, list[ast.expr], dict[str, ast.expr] | None]:
    """What an optimizer or schedule gets first, then positional arguments and keywords; None for `**keywords`."""
    args = list(node.args)
    if any(one.arg is None for one in node.keywords):
        return None, args, None
    keywords = {one.arg or "": one.value for one in node.keywords}
    lead = None
    if entry.kind in ("optimizer", "schedule"):
        lead = args.pop(0) if args else keywords.pop("params", keywords.pop("optimizer", None))
    return lead, args, keywords


def _star_only(
    args: Sequence[ast.expr], keywords: Mapping[str, ast.expr] | None, entry: Entry
) -> list[ast.expr] | None:
    """`nn.Sequential(*layers)`: a star is fine where the other side takes one too."""
    stars = entry.signatures and entry.signatures[0].parameters[:1] and entry.signatures[0].parameters[0].star
    return list(args) if stars and not keywords else None


def _bound(
    called: Called, entry: Entry, args: list[ast.expr], keywords: dict[str, ast.expr], reading: Reading
) -> dict[str, Any] | None:
    """The arguments by name, for the first overload they fit."""
    spoken = {key: value for key, value in keywords.items() if key not in SAYS_NOTHING}
    method = called.receiver is not None
    head = {"input": called.receiver} if method else {}
    if not entry.signatures and not args and not spoken:
        return head
    for one in entry.signatures or (Signature(()),):
        if keywords.keys() & set(one.names) & SAYS_NOTHING:
            spoken = {**spoken, **{key: keywords[key] for key in keywords if key in one}}
        found = one.bind(args, spoken, lambda value, kind: _fits(value, kind, reading))
        if found is not None:
            return {**head, **found}
    return None


def _fits(value: Any, kind: str, reading: Reading) -> bool:
    """Whether an expression can be what a schema asks for, as far as it shows."""
    if isinstance(value, Starred):
        return kind.endswith("[]") and all(_fits(one, kind[:-2], reading) for one in value)
    known, literal = reading.kind(value), literal_of(value)
    if kind == "Tensor":
        return known.what not in ("python", "layer") and literal is MISSING
    if kind == "Tensor[]":
        return known.what != "tensor" or isinstance(value, ast.List | ast.Tuple | ast.ListComp)
    if known.what == "tensor":
        return kind.endswith("[]") and isinstance(value, ast.List | ast.Tuple | ast.ListComp)
    if kind == "str":
        return isinstance(literal, str) if literal is not MISSING else known.name in ("", "str")
    if isinstance(literal, str) and literal is not MISSING:
        return False
    if kind == "bool":
        return isinstance(literal, bool) or literal is MISSING
    if kind in ("int", "SymInt", "float", "Scalar"):
        return not isinstance(value, ast.List | ast.Tuple)
    return True


def literal_of(node: Any) -> Any:
    """The value of an expression that is written out; MISSING otherwise."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return MISSING


def token(node: Any, reading: Reading) -> str | None:
    """What an argument is, in the words of the map; None when the source does not show it."""
    if isinstance(node, Starred):
        return "star"
    value = literal_of(node)
    if value is not MISSING:
        return token_of(value)
    if isinstance(node, ast.Tuple | ast.List):
        return "tuple" if isinstance(node, ast.Tuple) else "list"
    kind = reading.kind(node)
    return kind.name if kind.what == "python" and kind.name in ("int", "float", "str", "list", "tuple") else None


def _choice(called: Called, entry: Entry, given: dict[str, Any], lead: ast.expr | None, reading: Reading) -> Judged:
    tokens = {key: token(node, reading) for key, node in given.items()}
    ranked = []
    for at, way in enumerate(entry.ways):
        fault = _fault(way, entry, given, tokens, reading)
        ranked.append((bool(fault[0]), _effort(way), at, way, fault))
    _, _, _, way, fault = min(ranked, key=lambda one: one[:3])
    if fault[0]:
        return Judged(called, "uncertain", fault[0], fault[1], None, given=given, lead=lead)
    if way.drawn:
        return Judged(called, "differs", "drawn", way=way, given=given, lead=lead)
    plain = way.rewrite.verbatim or not _touched(way, given)
    same = way.rewrite.method == (called.receiver is not None) and not way.rewrite.template
    verdict: Verdict = "equivalent" if plain and same and not way.rough else "differs"
    return Judged(called, verdict, way=way, given=given, lead=lead)


def _touched(way: Known, given: Mapping[str, Any]) -> bool:
    rewrite = way.rewrite
    said = {rewrite.names.get(key, key) for key in given}
    placed = set(rewrite.order[: len(given)])
    renamed = any(key in rewrite.names and key not in placed for key in given)
    return bool(
        renamed
        or rewrite.template
        or any(key in given for key in rewrite.turn)
        or any(key not in said for key in (*rewrite.add, *rewrite.fill))
    )


def _effort(way: Known) -> int:
    rewrite = way.rewrite
    longest = sum(len(one) for one in rewrite.turn.values())
    return len(rewrite.names) + len(rewrite.add) + 2 * len(rewrite.fill) + longest + 30 * bool(rewrite.template)


def _fault(
    way: Known, entry: Entry, given: Mapping[str, Any], tokens: Mapping[str, str | None], reading: Reading
) -> tuple[str, str]:
    """Why this way does not hold for these arguments; empty when it does."""
    for key, node in given.items():
        if key in way.rewrite.absent and key not in SAYS_NOTHING:
            default = next((one.get(key) for one in entry.signatures if key in one), None)
            value = literal_of(node)
            if default is None or value is MISSING or value != default.default:
                return "absent", key
        bad = way.bad.get(key, ())
        told = tokens[key]
        if told is not None and told in bad:
            return "fails_with", f"{key}={told}"
        if isinstance(node, ast.Tuple | ast.List) and repr(str(len(node.elts))) in way.bad.get(f"len({key})", ()):
            return "fails_with", f"len({key})={len(node.elts)}"
        open_ = told is None and not isinstance(node, Starred) and reading.kind(node).what != "tensor"
        if open_ and bad and not _tensors_only(bad):
            return "depends_on", key
    if not way.takes(tuple(key for key in given if key not in SAYS_NOTHING or key in way.rewrite.absent)):
        seen = {name for form, (good, _) in way.forms.items() if good for name in form.split()}
        unseen = [key for key in given if key not in seen and key not in SAYS_NOTHING]
        if unseen:
            return "unseen", ", ".join(unseen)
    if way.gradient in ("fails", "differs") and not entry.name.startswith("torch.optim"):
        return ("gradient", way.gradient)
    return "", ""


def _tensors_only(tokens: Sequence[str]) -> bool:
    return all(
        one.startswith(("int", "uint", "float", "bool", "complex")) and one not in ("int", "float") for one in tokens
    )
