"""What MindSpore's graph mode would refuse, or do otherwise, in the construct of a network."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from misstep.diagnosis.lint.source import FORWARD, Function, Source
from misstep.migration.scan.reading import Reading
from misstep.sentences import porting as sentences

_READS = frozenset({"item", "tolist", "numpy", "asnumpy"})


@dataclass(frozen=True, slots=True)
class Hazard:
    """One line of the source."""

    path: str
    line: int
    what: str
    message: str


def hazards(source: Source, reading: Reading) -> list[Hazard]:
    """In the order of lines."""
    found = {
        (line, what): Hazard(source.path, line, what, sentences.HAZARDS[what].of(name=name))
        for network in source.networks.values()
        for method in (network.methods.get(word) for word in FORWARD)
        if method is not None
        for line, what, name in _in(method, source, reading)
    }
    return [found[key] for key in sorted(found)]


def _in(method: Function, source: Source, reading: Reading) -> Iterator[tuple[int, str, str]]:
    inside = set(ast.walk(method))
    for statement, test in reading.tensors:
        if test in inside:
            yield statement.lineno, "branch", ""
    for called in reading.calls:
        if called.node not in inside or not isinstance(called.node, ast.Call):
            continue
        word = called.name.rpartition(".")[2]
        if called.name == "builtins.print":
            yield called.node.lineno, "print", ""
        elif called.name.startswith("numpy."):
            yield called.node.lineno, "numpy", ""
        elif called.group == "framework" and word in _READS:
            yield called.node.lineno, "value", word
    for node in inside:
        if not isinstance(node, ast.stmt):
            continue
        if isinstance(node, ast.Try):
            yield node.lineno, "try", ""
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                yield node.lineno, "state", target.attr
