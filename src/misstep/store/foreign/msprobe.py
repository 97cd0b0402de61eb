"""msprobe's dump as a source: `dump.json` names the tensors, `dump_tensor_data/` holds them.

    step0/rank0/dump.json         {"task": "tensor", "level": "L0", "data": {"Module.fc1.Linear.forward.0": {…}, …}}
    step0/rank0/stack.json        which lines called
    step0/rank0/dump_tensor_data/Module.fc1.Linear.forward.0.input.0.pt | .npy

The keys of `data` are in execution order. `Module.<name>.<type>.forward.<call>` is a module,
`Functional.linear.3.forward` the fourth call of a function.
In a backward entry `input` is the gradient that arrives, `output` the one handed on.
With task "statistics" only Max, Min, Mean and Norm exist; they are told by `statistics`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from misstep.core.address import Role
from misstep.core.stats import TensorStats
from misstep.errors import FormatError, TensorUnavailable
from misstep.store.boundary import Damaged, json_file, plain_name, reading, whole_number
from misstep.store.checkpoint import read_checkpoint
from misstep.store.foreign.elements import from_mindspore, from_torch
from misstep.store.foreign.npyfile import read_npy
from misstep.store.foreign.said_statistics import MSPROBE, stats_said
from misstep.store.foreign.source import Entry

_MODULE = re.compile(
    r"(?:Module|Cell)\.(?P<name>.+)\.(?P<type>[^.]+)\.(?P<pass>forward|backward|parameters_grad)(?:\.(?P<call>\d+))?"
)
_FUNCTION = re.compile(r"(?P<kind>[^.]+)\.(?P<type>.+?)\.(?P<call>\d+)\.(?P<pass>forward|backward)")
_ROLES: dict[tuple[str, str], Role] = {
    ("forward", "input_args"): "input",
    ("forward", "input_kwargs"): "input",
    ("forward", "input"): "input",
    ("forward", "output"): "output",
    ("forward", "parameters"): "param",
    ("backward", "input"): "grad_output",
    ("backward", "output"): "grad_input",
    ("parameters_grad", "parameters_grad"): "grad",
}


def looks_like_msprobe(path: Path) -> bool:
    return next(_dump_files(path), None) is not None


def open_msprobe(path: str | Path) -> MsprobeDump:
    """A dump of msprobe, from the folder of a rank, of a step, or of all of them."""
    where = Path(path)
    files = list(_dump_files(where))
    if not files:
        raise FormatError(f"{where} holds no dump.json of msprobe", path=str(where))
    return MsprobeDump(where, files)


class MsprobeDump:
    """The tensors of one or more dump.json files."""

    def __init__(self, path: Path, files: list[Path]) -> None:
        self.path = path
        self._statistics: dict[str, dict[str, Any]] = {}
        self._entries: list[Entry] = []
        for file in files:
            self._read(file)

    @property
    def label(self) -> str:
        return str(self.path)

    def entries(self) -> list[Entry]:
        return self._entries

    def statistics(self, entry: Entry) -> dict[str, Any]:
        """Max, Min, Mean and Norm as msprobe wrote them."""
        return self._statistics.get(str(entry.address), {})

    def stats(self, entry: Entry) -> TensorStats | None:
        """The same as statistics of ours; None when only a checksum was dumped."""
        return stats_said(self.statistics(entry), MSPROBE, shape=entry.shape, dtype=entry.dtype)

    def memory(self, entry: Entry) -> Hashable:
        return None

    def digest(self, entry: Entry) -> str:
        """The checksum of the values, where msprobe dumped one (summary_mode md5)."""
        return str(self.statistics(entry).get("md5", ""))

    def array(self, entry: Entry) -> NDArray[Any]:
        if not entry.key:
            raise TensorUnavailable(
                f"only the statistics of {entry} were dumped; dump it again with task 'tensor'", address=str(entry)
            )
        file = Path(entry.key)
        if not file.is_file():
            raise TensorUnavailable(f"{file.name} is named in dump.json but not there", address=str(entry))
        if file.suffix == ".npy":
            return read_npy(file, dtype=entry.dtype)
        checkpoint = read_checkpoint(file)
        return checkpoint[next(iter(checkpoint))]

    def _read(self, file: Path) -> None:
        said = json_file(file, "dump.json of msprobe")
        with reading(file, "dump.json of msprobe"):
            self._take_in(file, said)

    def _take_in(self, file: Path, said: dict[str, Any]) -> None:
        lines = _stacks(file.with_name("stack.json"))
        data = file.parent / "dump_tensor_data"
        step, rank = _number(file, "step"), _number(file, "rank")
        every = said.get("data") or {}
        if not isinstance(every, dict):
            raise Damaged("data: a table of calls")
        for order, (key, body) in enumerate(every.items()):
            place = _place(key)
            if place is None or not isinstance(body, dict):
                continue
            name, kind, which, call = place
            source = lines.get(key, "")
            for role, slot, suffix, tensor in _tensors(which, body):
                held = tensor.get("data_name")
                entry = Entry(
                    name=f"{name}.{suffix}" if suffix else name,
                    role=role,
                    slot=slot,
                    node_type=kind,
                    shape=tuple(whole_number(size, f"a size in {key[:80]}") for size in tensor.get("shape") or ()),
                    dtype=_dtype(str(tensor.get("dtype", ""))),
                    order=order,
                    source_line=source,
                    step=step,
                    rank=rank,
                    call=1 if role in ("param", "grad") else call,
                    key=str(data / held) if isinstance(held, str) and held != "-1" and plain_name(held) else "",
                )
                self._entries.append(entry)
                words = ("Max", "Min", "Mean", "Norm", "md5")
                numbers: dict[str, Any] = {word: tensor[word] for word in words if word in tensor}
                self._statistics[str(entry.address)] = numbers


def _tensors(which: str, body: dict[str, Any]) -> Iterator[tuple[Role, int, str, dict[str, Any]]]:
    """Role, slot, name of the parameter, and what is said of it; slots count through nested arguments."""
    if which == "parameters_grad":
        for word, given in body.items():
            for tensor in _flat(given):
                yield "grad", 0, word, tensor
        return
    slots: dict[Role, int] = {}
    for section, given in body.items():
        role = _ROLES.get((which, section))
        if role is None:
            continue
        if role == "param":
            for word, inner in given.items() if isinstance(given, dict) else ():
                for tensor in _flat(inner):
                    yield role, 0, word, tensor
            continue
        for tensor in _flat(given):
            yield role, slots.setdefault(role, 0), "", tensor
            slots[role] += 1


def _flat(given: Any) -> Iterator[dict[str, Any]]:
    if isinstance(given, dict):
        if "shape" in given and "dtype" in given:
            yield given
        else:
            for inner in given.values():
                yield from _flat(inner)
    elif isinstance(given, list | tuple):
        for inner in given:
            yield from _flat(inner)


def _place(key: str) -> tuple[str, str, str, int] | None:
    module = _MODULE.fullmatch(key)
    if module:
        return module["name"], module["type"], module["pass"], int(module["call"] or 0) + 1
    function = _FUNCTION.fullmatch(key)
    if function:
        return f"{function['kind']}.{function['type']}.{function['call']}", function["type"], function["pass"], 1
    return None


def _dtype(word: str) -> str:
    return from_torch(word) or from_mindspore(word) or word.lower()


def _stacks(file: Path) -> dict[str, str]:
    """The innermost line that called each operator; msprobe writes a list of frames, or groups of callers."""
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    found = {}
    for key, frames in said.items() if isinstance(said, dict) else ():
        if (
            isinstance(frames, list)
            and len(frames) == 2
            and isinstance(frames[0], list)
            and isinstance(frames[1], list)
        ):
            for caller in frames[0]:
                found[str(caller)] = _frame(frames[1])
        elif isinstance(frames, list):
            found[str(key)] = _frame(frames)
    return found


def _frame(frames: list[Any]) -> str:
    for frame in frames:
        said = re.search(r"File (\S+), line (\d+)", str(frame))
        if said and "site-packages" not in said[1]:
            return f"{said[1]}:{said[2]}"
    return ""


def _number(file: Path, word: str) -> int | None:
    for folder in file.parents:
        said = re.fullmatch(rf"{word}_?(\d+)", folder.name)
        if said:
            return int(said[1])
    return None


def _dump_files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        return
    for depth in ("", "*/", "*/*/"):
        for file in sorted(path.glob(f"{depth}dump.json")):
            with open(file, encoding="utf-8", errors="replace") as opened:
                if '"data"' in opened.read(4096):
                    yield file
