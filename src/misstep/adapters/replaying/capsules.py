"""What the capsules of all frameworks share: how one is told from another, how a step in it is compared, and a file
that needs no framework to be read.

    capsule.json      its facts; a tensor among them is {"tensor": 3, "dtype": "float32", "shape": [4, 3]}
    tensors/3         the bytes of one tensor

Nothing in it is ever executed. Capsules of PyTorch are what torch.save writes: zip files too, without capsule.json.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from misstep import kernels
from misstep.adapters.step.frame import Frame
from misstep.core.graph import Graph
from misstep.errors import ReplayError
from misstep.sentences import replay as texts
from misstep.sentences.text import clauses

FORMAT = 1
_FACTS = "capsule.json"


def write_capsule(path: Path, facts: dict[str, Any]) -> None:
    """Facts of plain values, lists, dicts and numpy arrays as one file."""
    arrays: list[Any] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(np.ascontiguousarray(value))
            return {"tensor": len(arrays) - 1, "dtype": value.dtype.name, "shape": list(value.shape)}
        if isinstance(value, dict):
            return {str(name): plain(item) for name, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, tuple | list) else value

    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plain(facts))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr(_FACTS, text)
        for number, array in enumerate(arrays):
            file.writestr(f"tensors/{number}", array.tobytes())


def read_capsule(path: Path) -> dict[str, Any]:
    """What `write_capsule` wrote; tuples come back as lists."""
    try:
        with zipfile.ZipFile(path) as file:

            def array(said: dict[str, Any]) -> Any:
                if said.keys() != {"tensor", "dtype", "shape"}:
                    return said
                dtype = np.dtype(getattr(ml_dtypes, said["dtype"], said["dtype"]))
                return np.frombuffer(file.read(f"tensors/{said['tensor']}"), dtype).reshape(said["shape"]).copy()

            facts: dict[str, Any] = json.loads(file.read(_FACTS), object_hook=array)
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise ReplayError(texts.UNREADABLE.of(path=path, why=str(error))) from error
    if facts.get("format") != FORMAT:
        raise ReplayError(texts.OTHER_VERSION.of(path=path))
    return facts


def framework_of(path: Path) -> str:
    """Which adapter can play a capsule."""
    try:
        with zipfile.ZipFile(path) as file:
            return str(json.loads(file.read(_FACTS))["framework"]) if _FACTS in file.namelist() else "pytorch"
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ReplayError(texts.UNREADABLE.of(path=path, why=str(error))) from error


def refuse_too_large(step: int, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise ReplayError(texts.TOO_LARGE.of(step=step, size=size / 2**20, most=most_bytes / 2**20))


class Doubts:
    """What was not as in the recorded step."""

    def __init__(self) -> None:
        self._why: list[str] = []

    def add(self, why: str) -> None:
        if why not in self._why and len(self._why) < 3:
            self._why.append(why)

    def __str__(self) -> str:
        return clauses(self._why) if self._why else texts.PROGRAM_CHANGED.of()


def how_exactly(
    recorded: dict[str, Any],
    doubts: Doubts,
    *,
    losses: list[int],
    gradients: dict[str, int],
    operators: dict[str, int],
) -> str:
    """'exact', or what differs between a step and the digests of it in a capsule."""
    if losses != recorded["losses"]:
        return texts.NOT_EXACT.of(why=texts.LOSS_DIFFERS.of(why=str(doubts)))
    bad = [name for name, digest in recorded["gradients"].items() if gradients.get(name) != digest]
    if bad:
        why = texts.GRADIENTS_DIFFER.of(some=len(bad), all=len(gradients), why=str(doubts))
        return texts.LOSS_ONLY.of(why=why)
    differ = [
        address
        for address, digest in recorded["operators"].items()
        if address in operators and operators[address] != digest
    ]
    if differ:
        return texts.OPERATORS_DIFFER.of(some=len(differ), all=len(operators), first=differ[0])
    return texts.EXACT.of()


def operator_digests(graph: Graph, frame: Frame) -> dict[str, int]:
    """By address, a digest of the statistics of everything forward and backward operators put out."""
    head, summary = frame.finish()
    found: dict[str, int] = {}
    for row, number in enumerate(head["tensor"].tolist()):
        key = graph.tensors[number]
        node = graph.nodes[key.node]
        if node.kind == "operator" and node.phase != "optimizer" and key.role == "output":
            found[str(graph.address(number))] = kernels.digest(summary[row : row + 1].ctypes.data, summary.itemsize)
    return found
