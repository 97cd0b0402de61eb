"""Stacks at the moment of a signal, written by Python's fault handler in C: it works when Python itself is stuck.

    SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL   → stacks/fatal_native.txt: frames of machine code (machine.py);
                                                 stacks/fatal.txt, then the process dies as it would have
    SIGTERM                                    → stacks/terminated.txt, then whatever was set up before, or death
    SIGUSR1                                    → stacks/asked.txt, and training goes on

No Python handler is installed: `signal.getsignal` answers as before, a process stuck in a collective still dies of
SIGTERM at once, and a handler the program sets up later simply replaces ours.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from pathlib import Path
from types import ModuleType
from typing import IO

from misstep.capture.crash.native_stacks import compiled

FILES = ("fatal", "fatal_native", "terminated", "asked", "hang")


class Signals:
    """The fault handler pointed at a rank's folder `stacks`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._files: dict[str, IO[bytes]] = {}
        for name in FILES:
            self._files[name] = open(folder / f"{name}.txt", "ab", buffering=0)  # noqa: SIM115  open as long as we are
        self._registered: list[int] = []
        self._enabled = False
        self._below: ModuleType | None = None
        self._pid = os.getpid()

    def install(self) -> None:
        # Somebody who has switched it on (-X faulthandler, pytest) wants to read it where it goes now.
        if not faulthandler.is_enabled():
            faulthandler.enable(self._files["fatal"], all_threads=True)
            self._enabled = True
        below = compiled()
        if below is not None and below.watch_fatal(self._files["fatal_native"].fileno()):
            self._below = below
        if threading.current_thread() is threading.main_thread():
            self._register(signal.SIGTERM, "terminated", chain=True)
            self._register(signal.SIGUSR1, "asked", chain=False)
        os.register_at_fork(after_in_child=self._forked)

    def _register(self, number: signal.Signals, name: str, *, chain: bool) -> None:
        current = signal.getsignal(number)
        if current == signal.SIG_IGN or (not chain and current != signal.SIG_DFL):
            return  # the program has its own use for it
        faulthandler.register(number, self._files[name], all_threads=True, chain=chain)
        self._registered.append(number)

    @property
    def asked_bytes(self) -> int:
        """Grows when somebody sends SIGUSR1."""
        return os.fstat(self._files["asked"].fileno()).st_size

    def arm_hang(self, seconds: float) -> None:
        """Write all stacks unless called again within this time: the last resort when no Python thread can run."""
        faulthandler.dump_traceback_later(seconds, file=self._files["hang"])

    def disarm_hang(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    def release(self) -> None:
        """Put everything back; empty files are removed."""
        if os.getpid() != self._pid:
            return
        for number in self._registered:
            faulthandler.unregister(number)
        self._registered.clear()
        if self._below is not None:
            self._below.leave_fatal()
            self._below = None
        if self._enabled:
            faulthandler.disable()
            self._enabled = False
        for name, file in self._files.items():
            empty = os.fstat(file.fileno()).st_size == 0
            file.close()
            if empty:
                (self.folder / f"{name}.txt").unlink(missing_ok=True)
        try:
            self.folder.rmdir()
        except OSError:
            pass  # something is in it, and stays

    def _forked(self) -> None:
        """A data loader's worker that is told to end is no news."""
        for number in self._registered:
            faulthandler.unregister(number)
        self._registered = []
