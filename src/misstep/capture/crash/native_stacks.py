"""Where every thread of this process is, below Python: what it does in the kernel, and its frames of machine code.

    thread 4711 (pt_main_thread), main, sleeping in futex
      libc.so.6  pthread_cond_wait+0x1e2
      libtorch_cpu.so  c10d::ProcessGroupGloo::AsyncWork::wait(…)+0x1a

Each thread is asked by a signal that is ignored by default (SIGURG) and answers from a handler in C, so a thread stuck
in a collective tells where. Without the compiled part, or for threads that do not answer, the kernel's word is all.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from types import ModuleType

from misstep.store.bundle.machinecode import in_words, read_map

_SECONDS = 1.0
"""How long threads may take to answer; one that runs answers in microseconds, one with signals blocked never."""
_STATES = {"R": "running", "S": "sleeping", "D": "waiting for a device", "T": "stopped", "t": "traced", "Z": "ended"}
_CALLS = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 23: "select", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto",
        45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 73: "flock", 74: "fsync", 202: "futex",
        230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
    },
    "aarch64": {
        22: "epoll_pwait", 32: "flock", 63: "read", 64: "write", 72: "pselect6", 73: "ppoll", 82: "fsync",
        95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 202: "accept", 203: "connect",
        206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 260: "wait4",
    },
}  # fmt: skip
"""Calls into the kernel in which threads wait, by their numbers (unistd.h)."""


def compiled() -> ModuleType | None:
    """The part in C; None where it was not built, or cannot work."""
    try:
        from misstep.capture.crash import _stacks
    except ImportError:
        return None
    return _stacks if hasattr(_stacks, "threads") else None


def kernel_threads() -> list[dict[str, str]]:
    """Where the kernel sees each thread of this process: its name, state, and what it sleeps in."""
    told = []
    try:
        tasks = sorted(os.listdir("/proc/self/task"), key=int)
    except OSError:
        return []
    for task in tasks[:128]:
        facts = {"id": task, "name": _line(task, "comm"), "waits_in": _line(task, "wchan")}
        facts["state"] = _line(task, "stat").rpartition(")")[2].strip()[:1]
        if facts["waits_in"] in ("", "0"):  # not told to everybody; the number of the call is
            facts["waits_in"] = _call(_line(task, "syscall"))
        told.append({name: fact for name, fact in facts.items() if fact})
    return told


def machine_stacks() -> str:
    """The frames of every other thread but misstep's own, for a person to read."""
    helper = compiled()
    frames = {str(thread): found for thread, found in helper.threads(_SECONDS)} if helper is not None else {}
    regions = read_map(Path("/proc/self/maps").read_text()) if frames else []
    told = []
    for facts in kernel_threads():
        if facts.get("name", "").startswith("misstep"):
            continue
        main = ", main" if facts["id"] == str(os.getpid()) else ""
        sleeps = f" in {facts['waits_in']}" if facts.get("waits_in") else ""
        state = _STATES.get(facts.get("state", ""), facts.get("state", ""))
        told.append(f"thread {facts['id']} ({facts.get('name', '')}){main}, {state}{sleeps}")
        told += [f"  {line}" for line in in_words(frames.get(facts["id"], ()), regions)]
    if helper is None:
        told.append("(frames of machine code are not told: misstep was installed without its compiled part)")
    return "\n".join(told) + "\n"


def _line(task: str, file: str) -> str:
    try:
        return Path(f"/proc/self/task/{task}/{file}").read_text().strip()
    except OSError:
        return ""


def _call(line: str) -> str:
    number = line.partition(" ")[0]
    if not number.isdecimal():  # "running", or not told
        return ""
    return _CALLS.get(platform.machine(), {}).get(int(number), f"system call {number}")
