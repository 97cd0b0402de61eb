"""Operators of profiled steps, as a table: what was called, with which shapes and types, by which module on which line,
and how long it took itself. Read from Chrome's trace format, which torch's and MindSpore's profilers both write.

An operator in backward is given to the module and line of the forward call it belongs to, by its sequence number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misstep.adapters.timing.marks import MARK
from misstep.errors import PerformanceError
from misstep.sentences.speed import operators as words
from misstep.store.layout import rank_paths
from misstep.store.reading.reader import Run

_BYTES = {"float": 4, "double": 8, "c10::BFloat16": 2, "c10::Half": 2, "long int": 8, "int": 4, "bool": 1}
_ENGINE = "autograd::engine::evaluate_function: "
CONVERSIONS = frozenset({"aten::to", "aten::_to_copy", "aten::copy_", "aten::contiguous", "aten::clone", "Cast"})
TINY_US = 20.0


@dataclass(frozen=True, slots=True)
class Operator:
    """One kind of call; times in microseconds, over all profiled steps."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    module: str
    line: str
    phase: str
    calls: int
    self_us: float
    total_us: float
    flops: float
    bytes: float
    example: dict[str, Any]
    """Arguments of one call, for a script that makes it again."""


@dataclass(frozen=True, slots=True)
class Profile:
    run: str
    rank: int
    steps: int
    seconds: float
    """Of the profiled steps together, profiling included."""
    operators: tuple[Operator, ...]

    @property
    def self_us(self) -> float:
        return sum(one.self_us for one in self.operators)


def profile_of(run: Run, rank: int | None = None) -> Profile:
    """The last profile of a rank."""
    chosen = rank if rank is not None else (run.ranks[0] if run.ranks else 0)
    told = [event.facts for event in run.events("profile", chosen)]
    if not told:
        raise PerformanceError(words.NO_PROFILE.of(run=run.name))
    facts = told[-1]
    path = rank_paths(run.path, chosen).directory / facts["path"]
    steps = facts["last"] - facts["first"] + 1
    return Profile(run.name, chosen, steps, facts["seconds"], tuple(operators_in(read_events(path))))


def read_events(path: Path) -> list[dict[str, Any]]:
    try:
        import msgspec

        found = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError) as error:
        raise PerformanceError(words.UNREADABLE.of(path=path.name, why=str(error))) from None
    events = found["traceEvents"] if isinstance(found, dict) else found
    return [event for event in events if event.get("ph") == "X" and "dur" in event]


@dataclass(slots=True)
class _Open:
    event: dict[str, Any]
    end: float
    children: float
    phase: str
    module: str
    line: str


def operators_in(events: Iterable[dict[str, Any]]) -> list[Operator]:
    """The table, what takes longest first."""
    wanted = [one for one in events if one.get("cat") in ("cpu_op", "user_annotation", "kernel")]
    forward = _by_sequence(wanted)
    rows: dict[tuple[Any, ...], list[Any]] = {}
    threads: dict[Any, list[_Open]] = {}
    for event in sorted(wanted, key=lambda one: (one["ts"], -one["dur"])):
        stack = threads.setdefault((event.get("pid"), event.get("tid")), [])
        while stack and event["ts"] >= stack[-1].end:
            _close(stack.pop(), stack, rows)
        stack.append(_opened(event, stack[-1] if stack else None, forward))
    for stack in threads.values():
        while stack:
            _close(stack.pop(), stack, rows)
    return sorted((_operator(key, row) for key, row in rows.items()), key=lambda one: -one.self_us)


def _opened(event: dict[str, Any], above: _Open | None, forward: dict[int, tuple[str, str]]) -> _Open:
    phase, module, line = (above.phase, above.module, above.line) if above else ("", "", "")
    name = event["name"]
    if name.startswith(MARK + "|"):
        _, module, line = name.split("|", 2)
        phase = phase or "forward"
    elif name.startswith(_ENGINE):
        module, line = forward.get(event["args"].get("Sequence number", -1), ("", ""))
        phase = "backward"
    elif name.startswith("Optimizer."):
        phase = "optimizer"
    elif event.get("cat") == "kernel":  # MindSpore's, told with its cell
        module, phase = event["args"].get("module", ""), event["args"].get("phase", "")
    return _Open(event, event["ts"] + event["dur"], 0.0, phase, module, line)


def _by_sequence(events: list[dict[str, Any]]) -> dict[int, tuple[str, str]]:
    """By sequence number, module and line of the forward call: that of the last operator that began with it."""
    found: dict[int, tuple[str, str]] = {}
    marks: list[tuple[float, str, str]] = []
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        while marks and event["ts"] >= marks[-1][0]:
            marks.pop()
        if event["name"].startswith(MARK + "|"):
            _, module, line = event["name"].split("|", 2)
            marks.append((event["ts"] + event["dur"], module, line))
        elif marks and event.get("cat") == "cpu_op" and not event["args"].get("Fwd thread id"):
            number = event["args"].get("Sequence number")
            if number is not None:
                found[number] = marks[-1][1:]
    return found


def _close(one: _Open, stack: list[_Open], rows: dict[tuple[Any, ...], list[Any]]) -> None:
    event = one.event
    counted = event.get("cat") != "user_annotation" and not event["name"].startswith("autograd::engine")
    if stack:
        # What a mark holds is its children's; a mark itself is nobody's time.
        stack[-1].children += event["dur"] if counted else one.children
    if not counted:
        return
    args = event.get("args") or {}
    shapes = tuple(tuple(dims) for dims in args.get("Input Dims", ()) if dims and not isinstance(dims[0], list))
    dtypes = tuple(kind for kind, dims in zip(args.get("Input type", ()), args.get("Input Dims", ())) if dims)
    key = (event["name"], shapes, dtypes, one.module, one.line, one.phase)
    row = rows.setdefault(key, [0, 0.0, 0.0, args])
    row[0] += 1
    row[1] += max(0.0, event["dur"] - one.children)
    row[2] += event["dur"]


def _operator(key: tuple[Any, ...], row: list[Any]) -> Operator:
    name, shapes, dtypes, module, line, phase = key
    calls, own, total, args = row
    moved = sum(_count(dims) * _BYTES.get(kind, 4) for dims, kind in zip(shapes, dtypes)) * calls
    example = {part: args.get(part, []) for part in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")}
    return Operator(
        name, shapes, dtypes, module, line, phase, calls, own, total, _flops(name, shapes) * calls, moved, example
    )


def _count(dims: Iterable[int]) -> int:
    product = 1
    for size in dims:
        product *= size
    return product


def _flops(name: str, shapes: tuple[tuple[int, ...], ...]) -> float:
    """Multiplications and additions of what is mostly that; 0 of everything else."""
    short = name.removeprefix("aten::")
    if short in ("mm", "bmm") and len(shapes) >= 2:
        return 2.0 * _count(shapes[0]) * shapes[1][-1]
    if short in ("addmm", "baddbmm") and len(shapes) >= 3:
        return 2.0 * _count(shapes[1]) * shapes[2][-1]
    if short in ("mkldnn_convolution", "_slow_conv2d_forward", "convolution") and len(shapes) >= 2:
        return 2.0 * _count(shapes[1]) * shapes[0][0] * _count(shapes[0][2:])  # of the same size, stride 1
    return 0.0


# ── what can be made of a table ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Slower:
    """One operator in two profiles; microseconds a step."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    module: str
    line: str
    before: float
    after: float


def compare(left: Profile, right: Profile) -> list[Slower]:
    """Both profiles by operator, what differs most first."""
    sides: list[dict[tuple[Any, ...], float]] = []
    for profile in (left, right):
        spent: dict[tuple[Any, ...], float] = {}
        for one in profile.operators:
            key = (one.name, one.shapes, one.module, one.phase)
            spent[key] = spent.get(key, 0.0) + one.self_us / profile.steps
        sides.append(spent)
    lines = {(one.name, one.shapes, one.module, one.phase): one.line for one in (*left.operators, *right.operators)}
    found = [
        Slower(key[0], key[1], key[2], lines[key], sides[0].get(key, 0.0), sides[1].get(key, 0.0))
        for key in sides[0].keys() | sides[1].keys()
    ]
    return sorted(found, key=lambda one: -abs(one.after - one.before))


def merged_trace(run: Run) -> dict[str, Any]:
    """All ranks' profiles in one trace for Perfetto: a rank is a process, and each begins at its own first event."""
    events: list[dict[str, Any]] = []
    for rank in run.ranks:
        for event in run.events("profile", rank)[-1:]:
            found = read_events(rank_paths(run.path, rank).directory / event.facts["path"])
            begin = min((one["ts"] for one in found), default=0.0)
            events.append({"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}})
            events += [{**one, "pid": rank, "ts": one["ts"] - begin} for one in found]
    if not events:
        raise PerformanceError(words.NO_PROFILE.of(run=run.name))
    return {"traceEvents": events}


def reproduction(operator: Operator) -> str:
    """A script that makes one such call again, with tensors of those shapes and types, and times it."""
    if not operator.name.startswith("aten::"):
        raise PerformanceError(words.NOT_REPRODUCED.of(operator=operator.name))
    given = operator.example
    made: list[str] = []
    arguments: list[str] = []
    for dims, kind, strides, value in zip(
        given["Input Dims"], given["Input type"], given["Input Strides"], given["Concrete Inputs"]
    ):
        if kind in _DTYPES:
            name = f"x{len(made)}"
            made.append(f"{name} = tensor({tuple(dims)}, {tuple(strides)}, {_DTYPES[kind]})")
            arguments.append(name)
        elif kind in ("Scalar", "ScalarList", ""):
            arguments.append(str(value) if str(value) else "None")
        else:
            raise PerformanceError(words.NOT_REPRODUCED.of(operator=operator.name))
    return _SCRIPT.format(
        what=f"{operator.name} {operator.shapes} {operator.dtypes}, {operator.line or operator.module}",
        made="\n".join(made),
        call=", ".join([f"torch.ops.aten.{operator.name.removeprefix('aten::')}", *arguments]),
    )


_DTYPES = {
    "float": "torch.float32",
    "double": "torch.float64",
    "c10::BFloat16": "torch.bfloat16",
    "c10::Half": "torch.float16",
    "long int": "torch.int64",
    "int": "torch.int32",
    "bool": "torch.bool",
}
_SCRIPT = '''"""One call, made again: {what}"""
import time
import torch

def tensor(size, stride, dtype):
    made = torch.empty_strided(size, stride, dtype=dtype)
    return made.normal_() if dtype.is_floating_point else made.zero_()

def bound(packet, *given):
    for name in packet.overloads():
        overload = getattr(packet, name)
        arguments = overload._schema.arguments
        if len(arguments) != len(given):
            continue
        positional = [value for one, value in zip(arguments, given) if not one.kwarg_only]
        named = {{one.name: value for one, value in zip(arguments, given) if one.kwarg_only}}
        try:
            overload(*positional, **named)
        except (RuntimeError, TypeError):
            continue
        return lambda: overload(*positional, **named)
    raise SystemExit("no overload takes these arguments")

{made}

with torch.no_grad():
    call = bound({call})
    times = []
    for _ in range(20):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
print(f"{{sorted(times)[10] * 1e6:.1f}} us")
'''
