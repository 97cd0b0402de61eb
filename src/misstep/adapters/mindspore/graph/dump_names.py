"""Which dumped operator is which operator of the graph: MindSpore counts some of them differently in its two accounts.

    in the graph and its order     …/Grad_Conv2D/Conv2DBackpropInput-op7      Expand/_SumExt/ReduceSum-op0
    in the names of the files      …_Grad_Conv2D_Conv2DBackpropInput-op0      Expand__SumExt_ReduceSum-op3

An operator that a pass of the compiler made anew has a new number in one of them, and others change places, differently
in every process (seen in MindSpore 2.10 with convolutions, AddN, Cast and expanded operators). Taken by its name,
an operator would be read as another one and be blamed for what it was given. So within one scope and type the values
decide: an operator's inputs are, to the bit, the outputs of those that feed it.
"""

from __future__ import annotations

from pathlib import Path

from misstep.adapters.mindspore.graph.dump_files import (
    PARAMETERS,
    CompiledGraph,
    DumpedFile,
    NodeFiles,
    dumped_files,
    lost,
)
from misstep.store.foreign.mindspore.ir import Feed
from misstep.store.foreign.npyfile import read_npy

_MOST_MATCHED = 3
"""Layers that begin with equal weights cannot be told apart in the first step; after an update they can."""


def files_by_operator(folder: Path, graph: CompiledGraph) -> dict[str, NodeFiles]:
    """The files of one run of a graph by operator; what belongs to no operator stands under PARAMETERS."""
    found = dumped_files(folder, graph)
    if graph.matched < _MOST_MATCHED and found:
        graph.dumped_as, certain = match_names(graph, found)
        graph.matched = _MOST_MATCHED if certain else graph.matched + 1
    named = {name: found[other] for name, other in graph.dumped_as.items() if other in found}
    return {**named, PARAMETERS: found[PARAMETERS]} if PARAMETERS in found else named


def match_names(graph: CompiledGraph, dumped: dict[str, NodeFiles]) -> tuple[dict[str, str], bool]:
    """By operator of the graph, the name its files have in this dump; and whether the values left no doubt."""
    matching = _Matching(graph, dumped)
    return matching.run(), matching.certain


class _Matching:
    def __init__(self, graph: CompiledGraph, dumped: dict[str, NodeFiles]) -> None:
        self.graph, self.dumped = graph, dumped
        self.chosen: dict[str, str] = {}
        self.certain = True
        self.free: dict[str, list[str]] = {}
        for name in sorted((name for name in dumped if name != PARAMETERS), key=_number):
            self.free.setdefault(_family(name), []).append(name)
        self.dumped_in = {family: len(names) for family, names in self.free.items()}
        self.listed_in: dict[str, int] = {}
        for name in graph.order:
            family = _family(lost(name))
            self.listed_in[family] = self.listed_in.get(family, 0) + 1
        self._digests: dict[DumpedFile, int] = {}

    def run(self) -> dict[str, str]:
        for name in self.graph.order:
            free = self.free.get(_family(lost(name)))
            found = self._choose(name, free) if free else ""
            if free and found:
                self.chosen[name] = found
                free.remove(found)
        return self.chosen

    def _choose(self, name: str, free: list[str]) -> str:
        family, own = _family(lost(name)), lost(name)
        complete = self.dumped_in[family] == self.listed_in[family]
        if complete and self.listed_in[family] == 1:
            return free[0]
        fits = {one: self._fit(name, self.dumped[one]) for one in free}
        scores = {one: differs - agrees for one, (agrees, differs) in fits.items()}
        best = min(free, key=lambda one: (scores[one], one != own, _number(one)))
        self.certain = self.certain and list(scores.values()).count(scores[best]) == 1
        agrees, differs = fits[best]
        # Of a family that was dumped in part, only what is known by its name or by its values.
        return best if complete or best == own or (agrees and not differs) else ""

    def _fit(self, name: str, files: NodeFiles) -> tuple[int, int]:
        """How many of its inputs are what the graph says, and how many inputs and outputs are not."""
        wiring = self.graph.wiring
        feeds, writes, sizes = wiring.feeds.get(name, ()), wiring.writes.get(name, {}), wiring.sizes.get(name, ())
        agrees = differs = 0
        for file in files.inputs:
            feed = feeds[file.slot] if file.slot < len(feeds) and file.slot not in writes else None
            made = self._made(feed)
            if made is not None:
                same = self._digest(file) == self._digest(made)
                agrees, differs = agrees + same, differs + (not same)
        for file in files.outputs:
            if file.slot < len(sizes):
                differs += read_npy(file.path, dtype=file.dtype).size != sizes[file.slot]
        return agrees, differs

    def _made(self, feed: Feed | None) -> DumpedFile | None:
        """What was fed, as its maker left it."""
        if feed is None or feed.parameter or feed.name not in self.chosen:
            return None
        maker = self.dumped[self.chosen[feed.name]]
        return next((one for one in maker.outputs if one.slot == feed.slot), None)

    def _digest(self, file: DumpedFile) -> int:
        if file not in self._digests:
            self._digests[file] = hash(read_npy(file.path, dtype=file.dtype).tobytes())
        return self._digests[file]


def _family(name: str) -> str:
    """`Default_fc-Dense_MatMul-op3` is one of `Default_fc-Dense_MatMul`."""
    return name.rpartition("-op")[0] or name


def _number(name: str) -> int:
    number = name.rpartition("-op")[2]
    return int(number) if number.isdecimal() else 0
