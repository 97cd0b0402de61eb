"""The process of a trial: started in a group of its own, so that all of it can be ended, and ended with its worker.

Its output goes to a file beside the run. When it ends, the kernel tells how much memory it had at most.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

STOP_SECONDS = 10.0
"""How long a trial may take to end when it is asked to, before it is killed."""


class TrialProcess:
    """A command that runs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        """OSError when there is no such command."""
        output.parent.mkdir(parents=True, exist_ok=True)
        self.output = output
        self.exit_code: int | None = None
        self.memory_mb = 0.0
        """The most that one of its processes had in memory; known when it has ended."""
        self.started = time.monotonic()
        self.seconds = 0.0
        with open(output, "ab") as file:
            self._child = subprocess.Popen(
                [*_ending_with_worker(command, environment), *command],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._ended = threading.Event()
        threading.Thread(target=self._await, name="misstep-trial", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._child.pid

    def wait(self, seconds: float) -> bool:
        """Wait at most this long; True when it has ended."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """End all of it: asked first, then killed."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._child.pid, number)
            except (ProcessLookupError, PermissionError):
                pass
            if self._ended.wait(STOP_SECONDS):
                break
        try:
            os.killpg(self._child.pid, signal.SIGKILL)  # what it started may have outlived it
        except (ProcessLookupError, PermissionError):
            pass

    def memory_now_mb(self) -> float:
        """What its processes have in memory now, memory that they share counted in each; 0 when unknown."""
        return sum(_resident_mb(pid) for pid in _descendants(self._child.pid))

    def _await(self) -> None:
        _, status, usage = os.wait4(self._child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._child.returncode = code
        self.exit_code = code if code >= 0 else 128 - code
        self.seconds = time.monotonic() - self.started
        self.memory_mb = usage.ru_maxrss / (1024 if sys.platform == "linux" else 2**20)
        self._ended.set()


def _descendants(pid: int) -> Iterator[int]:
    """A process and all it started that still run."""
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for thread in threads:
        with contextlib.suppress(OSError):
            for child in (thread / "children").read_text().split():
                yield from _descendants(int(child))


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _ending_with_worker(command: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """What has the kernel end the command when the worker is killed, so that no orphan trains on; OSError if there is
    no such command.

    A program of its own and no function between fork and exec: in a process with threads of gRPC that function aborts.
    """
    path = environment.get("PATH")
    if shutil.which(command[0], path=path) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return (setpriv, "--pdeathsig", "TERM", "--") if setpriv is not None else ()
