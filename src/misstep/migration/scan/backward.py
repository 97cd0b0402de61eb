"""The map read from the other end: which name of PyTorch a name of MindSpore came from."""

from __future__ import annotations

import functools

from misstep.migration.apimap.table import Entry, Known, Table, Verdict, load
from misstep.migration.scan.judge import Judged
from misstep.migration.scan.reading import Called

_OWN_WORDS = ("torch.nn.functional.", "torch.special.", "torch.linalg.")


def judge_back(called: Called, table: Table) -> Judged:
    """Equivalent where the way was verbatim and held for every sample; differs with the words that change back."""
    found = _backward().get(called.name) if table is load() else None
    if found is None:
        return Judged(called, "uncertain", "not_in_map")
    entry, way = found
    names = ", ".join(f"{theirs} → {ours}" for ours, theirs in way.rewrite.names.items())
    verdict: Verdict = "equivalent" if entry.verdict == "equivalent" and way.rewrite.verbatim else "differs"
    return Judged(called, verdict, detail=f"{entry.name}({names})" if names else entry.name, way=way)


@functools.cache
def _backward() -> dict[str, tuple[Entry, Known]]:
    """By MindSpore's name: the PyTorch entry whose best way it is; the same last word wins."""
    found: dict[str, tuple[Entry, Known]] = {}
    for entry in load().entries.values():
        for way in entry.ways:
            target = way.rewrite.target
            held = found.get(target)
            if target and (held is None or _nearness(entry, target) > _nearness(held[0], target)):
                found[target] = (entry, way)
    return found


def _nearness(entry: Entry, target: str) -> tuple[bool, bool, bool]:
    method = entry.name.startswith("torch.Tensor.") == target.startswith("mindspore.Tensor.")
    word = entry.name.rpartition(".")[2] == target.rpartition(".")[2]
    return method, word, entry.verdict == "equivalent"
