"""A flight record explained: what ended the run, where it was, which rank stopped first, and what usually causes it.

    bundle ──► one Ending per rank ──► the culprit ──► event, place, likely causes

Facts only: sentences for people are the command line's. The place is the user's own line nearest to the failure; when
a process was killed without a word, it is the module it had entered last and the line that called the network.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from typing import Any, Literal

from misstep.diagnosis.crash.events import last_events, number
from misstep.diagnosis.crash.knowledge import Cause, Look, likely_causes
from misstep.diagnosis.crash.position import Reached, reached
from misstep.store.bundle.open import Bundle, RankRecord

EventKind = Literal["exception", "exit", "signal", "hang", "asked", "end", "lost"]


@dataclass(frozen=True, slots=True)
class Event:
    """What ended a process, or why a record of it was made."""

    kind: EventKind
    name: str = ""
    """The exception's type, or the signal."""
    text: str = ""
    code: int | None = None
    seconds: float = 0.0
    """Of a hang."""
    memory_killer: bool = False


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a process was."""

    step: int
    phase: str = ""
    node: str = ""
    type: str = ""
    source: str = ""
    """`train.py:12`."""
    code: str = ""
    function: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one rank ended."""

    rank: int
    event: Event
    spot: Spot
    last_step: int
    last_time: float
    """When it last finished a step, or said something."""
    collective: str = ""
    waiting_seconds: float = 0.0
    collectives: int = 0


@dataclass(frozen=True, slots=True)
class Crash:
    """Everything `misstep open` tells."""

    run: str
    kind: str
    time: float
    culprit: Ending
    endings: tuple[Ending, ...]
    loss: float | str | None
    losses: tuple[float | None, ...]
    memory: dict[str, int]
    memory_curve: tuple[tuple[int, int], ...]
    """(step, bytes) of the culprit's resident memory."""
    limits: dict[str, int]
    holders: tuple[dict[str, Any], ...]
    causes: tuple[Cause, ...]
    frames: tuple[dict[str, Any], ...]
    """The culprit's stack, the outermost first."""
    threads: tuple[dict[str, Any], ...]
    stacks: dict[str, str]
    trail: tuple[dict[str, str], ...]
    """Modules entered, the latest first."""
    steps: tuple[dict[str, Any], ...]
    log: tuple[str, ...]
    events: tuple[dict[str, Any], ...]
    batch: tuple[dict[str, Any], ...]
    """What the network was called with last: type, shape, digest."""
    values: tuple[dict[str, Any], ...] = ()
    """Whole tensors in the record: address, type, shape."""
    left_out: dict[str, Any] = field(default_factory=dict)
    """Whole tensors there was no room for: how many, their bytes, the first names."""
    reached: Reached | None = None
    """How far the culprit's last step had come in execution order."""
    random: dict[str, str] = field(default_factory=dict)
    """Digests of the states of its random generators."""
    kernel_threads: tuple[dict[str, str], ...] = ()
    """Its threads as the operating system saw them: name, state, what each slept in."""
    machine: tuple[str, ...] = ()
    """Frames of machine code, the innermost first: where a fatal signal struck, or where the main thread was."""
    environment: dict[str, str] = field(default_factory=dict)
    device: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def explain(bundle: Bundle) -> Crash:
    """What a flight record says."""
    made = float(bundle.manifest.get("time", 0.0))
    endings = tuple(_ending(bundle, rank, made) for rank in bundle.ranks)
    culprit = _culprit(endings, bundle.kind)
    rank = next(one for one in bundle.ranks if one.rank == culprit.rank)
    record, report = rank.record, _report(rank, bundle.kind)
    steps = tuple(record.get("steps", ()))
    curve = tuple((int(s["step"]), int(s["memory"]["rss"])) for s in steps if s.get("memory", {}).get("rss"))
    memory = dict(report.get("memory") or (steps[-1].get("memory", {}) if steps else {}))
    threads = tuple(report.get("threads", ()))
    frames = tuple(report.get("frames", ())) or _main_frames(threads) or tuple(_fault_frames(_fault_text(rank)))
    return Crash(
        run=bundle.run.name,
        kind=bundle.kind,
        time=made,
        culprit=culprit,
        endings=endings,
        loss=next((step.get("loss") for step in reversed(steps) if step.get("loss") is not None), None),
        losses=tuple(number(step.get("loss")) for step in steps),
        memory=memory,
        memory_curve=curve,
        limits=dict(record.get("limits", {})),
        holders=tuple(report.get("holders") or record.get("holders", ())),
        causes=tuple(_causes(bundle, rank, culprit, endings, memory, dict(record.get("limits", {})))),
        frames=frames,
        threads=threads,
        stacks=rank.stacks,
        trail=tuple(record.get("trail", ())),
        steps=steps,
        log=tuple(line for line in rank.log.splitlines() if line.strip())[-40:],
        events=tuple(last_events(bundle)),
        batch=tuple(record.get("batch", {}).get("tensors", ())),
        values=tuple(
            {"address": str(stored.address), "dtype": stored.dtype, "shape": stored.shape}
            for stored in bundle.run.tensors()
        ),
        left_out=bundle.left_out,
        reached=_reached(bundle, culprit, record),
        random=dict(report.get("random") or (steps[-1].get("random", {}) if steps else {})),
        kernel_threads=tuple(report.get("threads_of_the_kernel", ())),
        machine=tuple(_machine(rank, bundle.kind)),
        environment=dict(report.get("environment", {})),
        device=dict(report.get("device", {})),
        problems=tuple(bundle.manifest.get("problems", ())),
    )


# ── one rank ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ending(bundle: Bundle, rank: RankRecord, made: float) -> Ending:
    record, report = rank.record, _report(rank, bundle.kind)
    event = _event(bundle, rank, report)
    steps = record.get("steps") or [{}]
    last = steps[-1]
    spoke = max(float(last.get("time", 0.0)), float(record.get("step_began", 0.0)), float(report.get("time", 0.0)))
    since = float(record.get("collective_since", 0.0))
    collective = str(record.get("collective", ""))
    if not collective and record.get("phase") == "backward" and "DistributedDataParallel" in record.get("networks", ()):
        collective, since = "all_reduce", float(record.get("step_began", 0.0))  # by DDP, in C++: only backward is seen
    return Ending(
        rank=rank.rank,
        event=event,
        spot=_spot(rank, report),
        last_step=int(last.get("step", 0)),
        last_time=spoke,
        collective=collective,
        waiting_seconds=max(0.0, (float(report.get("time", 0.0)) or made) - since) if collective and since else 0.0,
        collectives=int(record.get("collectives_done", 0)),
    )


def _report(rank: RankRecord, kind: str) -> dict[str, Any]:
    """The report that belongs to this kind of bundle."""
    wanted = {"crash": ("exception", "exit"), "hang": ("hang",), "asked": ("asked",), "end": ("end",)}.get(kind, ())
    fitting = [report for report in rank.reports if report.get("kind") in wanted]
    return fitting[-1] if fitting else {}


_FATAL = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}


def _event(bundle: Bundle, rank: RankRecord, report: dict[str, Any]) -> Event:
    kind = report.get("kind")
    if kind == "exception":
        return Event("exception", str(report.get("type", "")), str(report.get("text", "")))
    if kind == "exit":
        return Event("exit", text=str(report.get("text", "")), code=int(report.get("code", 1)))
    if kind == "hang":
        return Event("hang", seconds=float(report.get("seconds", 0.0)))
    if kind == "asked":
        return Event("asked")
    if kind == "end":
        return Event("end")
    fatal = rank.stacks.get("fatal", "")
    for error, name in _FATAL.items():
        if f"Fatal Python error: {error}" in fatal:
            return Event("signal", name)
    ends = [event.facts for event in bundle.run.events("end", rank.rank)]
    if ends:
        code = ends[-1].get("exit")
        return Event("exit", code=code) if isinstance(code, int) and code else Event("end")
    if bundle.kind != "crash":
        return Event("asked" if bundle.kind == "asked" else "lost")
    if rank.stacks.get("terminated"):
        return Event("signal", "SIGTERM")
    name = _signal_name(bundle.exit_code)
    if name:
        return Event("signal", name, memory_killer="out-of-memory killer" in bundle.note)
    return Event("exit", code=bundle.exit_code) if bundle.exit_code else Event("lost")


def _signal_name(code: int | None) -> str:
    try:
        return signal.Signals(code - 128).name if code is not None and code > 128 else ""
    except ValueError:
        return ""


def _spot(rank: RankRecord, report: dict[str, Any]) -> Spot:
    record = rank.record
    phase = str(report.get("phase") or record.get("phase", ""))
    step = int(report.get("step") or record.get("step", 0))
    trail = record.get("trail", ())
    node = str(report.get("node") or (trail[0]["name"] if trail and phase == "forward" else ""))
    kind = next((one["type"] for one in trail if one["name"] == node), "")
    frames = list(report.get("frames", ())) or _main_frames(tuple(report.get("threads", ())))
    frames = list(frames) or _fault_frames(_fault_text(rank))
    own = [frame for frame in frames if not frame.get("library")]
    if own:
        last = own[-1]
        source = f"{last['file']}:{last['line']}"
        return Spot(step, phase, node, kind, source, str(last.get("code", "")), str(last.get("function", "")))
    source, code = str(record.get("called_from", "")), str(record.get("called_code", ""))
    return Spot(step, phase, node, kind, source if phase == "forward" else "", code if phase == "forward" else "")


def _reached(bundle: Bundle, culprit: Ending, record: dict[str, Any]) -> Reached | None:
    names = [str(one["name"]) for one in record.get("trail", ())]
    return reached(bundle.run.graph(culprit.rank), culprit.spot.phase, names)


def _main_frames(threads: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    return next((tuple(thread["frames"]) for thread in threads if thread.get("main")), ())


def _fault_text(rank: RankRecord) -> str:
    return next((rank.stacks[name] for name in ("fatal", "terminated", "hang", "asked") if rank.stacks.get(name)), "")


def _machine(rank: RankRecord, kind: str) -> list[str]:
    """The frames below Python of the thread that matters; see capture/crash/native_stacks.py."""
    text = rank.stacks.get("fatal_native" if kind == "crash" else f"{kind}_native", "")
    blocks = re.split(r"^(?=thread |machine code of thread )", text, flags=re.MULTILINE)
    chosen = [block for block in blocks if block.startswith("machine code") or ", main, " in block.partition("\n")[0]]
    return [line.strip() for block in chosen[:1] for line in block.splitlines() if line.startswith("  ")]


_FAULT_LINE = re.compile(
    r'  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)(?:\n    (?P<code>[^\n]+))?'
)


def _fault_frames(text: str) -> list[dict[str, Any]]:
    """The stack of the thread the fault handler calls current, else of the last one (the main thread)."""
    blocks = re.split(r"\n(?=(?:Current thread|Thread) 0x)", "\n" + text)
    current = [block for block in blocks if block.lstrip().startswith("Current thread")]
    chosen = current[-1] if current else blocks[-1]
    frames: list[dict[str, Any]] = []
    for found in _FAULT_LINE.finditer(chosen):
        frame = {**found.groupdict(""), "line": int(found["line"])}
        if re.search(r"site-packages|dist-packages|<frozen|/lib/python3|/misstep/(?:capture|adapters)/", found["file"]):
            frame["library"] = True
        frames.append(frame)
    return frames[::-1]


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _culprit(endings: tuple[Ending, ...], kind: str) -> Ending:
    """The rank that stopped first; of a hang, the one the others wait for."""
    if kind == "hang":
        return min(endings, key=lambda one: (bool(one.collective), one.last_step, one.last_time, one.rank))
    weight = {"exception": 0, "signal": 1, "exit": 2, "hang": 3, "lost": 4, "asked": 5, "end": 6}

    def order(one: Ending) -> tuple[int, float, int]:
        # The launcher ends the others with SIGTERM; a connection that broke is another rank's failure heard of.
        ended_by_launcher = one.event.kind == "signal" and one.event.name == "SIGTERM" and len(endings) > 1
        echo = one.event.kind == "exception" and re.search(_ECHO, one.event.text) is not None
        return (4 if ended_by_launcher else 3 if echo else weight[one.event.kind], one.last_time, one.rank)

    return min(endings, key=order)


_ECHO = r"Connection (?:reset|closed)|Broken pipe|Timed out waiting|gloo|NCCL|collective operation timeout"


def _causes(
    bundle: Bundle,
    rank: RankRecord,
    culprit: Ending,
    endings: tuple[Ending, ...],
    memory: dict[str, int],
    limits: dict[str, int],
) -> list[Cause]:
    report = _report(rank, bundle.kind)
    event = culprit.event
    ends = []
    if event.kind == "signal":
        share = 100 * memory.get("rss", 0) // min(limits.values()) if limits else 0
        verb = "ended" if event.name == "SIGTERM" else "killed"
        ends.append(f"{verb} by {event.name}, memory at {share} %")
        ends += ["out-of-memory killer"] if event.memory_killer else []
    if event.kind == "hang":
        ends.append(f"no step ended for {event.seconds:.0f} s")
    if bundle.kind == "hang":
        ends += [f"rank {one.rank} waits in {one.collective}" for one in endings if one.collective]
    if bundle.run.verdict is not None:
        ends.append("first bad value")
    error = f"{event.name}: {event.text}\n{report.get('cause', '')}" if event.kind == "exception" else event.text
    texts: dict[Look, str] = {
        "error": error,
        "end": "\n".join(ends),
        "stack": rank.stacks.get("fatal", ""),
        "log": "\n".join(rank.log.splitlines()[-60:]) if event.kind in ("signal", "exit", "lost") else "",
    }
    if event.kind in ("end", "asked"):
        return []
    return likely_causes(texts, frameworks=list(bundle.run.info.frameworks))
