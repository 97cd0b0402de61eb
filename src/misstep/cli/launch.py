"""Runs the user's command as if misstep were not there: its streams, exit code, signals and Ctrl-C are its own.

The child stays in our process group, so the terminal treats both as one job. Ctrl-C therefore reaches it from the
terminal, once, and we must only survive it; a signal sent to us alone (kill, a supervisor) is passed on.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""The shell's own exit codes for a command that cannot be started."""


class CannotStart(Exception):
    """The command never ran; `exit_code` is what a shell would return."""

    def __init__(self, why: str, exit_code: int) -> None:
        super().__init__(why)
        self.exit_code = exit_code


_FROM_KEYBOARD = ("SIGINT", "SIGQUIT")
_PASSED_ON = (*_FROM_KEYBOARD, "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    tick: Callable[[], None] = lambda: None,
    seconds: float | None = None,
    directory: str | None = None,
) -> int:
    """The command's exit code, 128 + N when signal N killed it. While it runs, `tick` is called every `seconds`.
    It is started here, or in the `directory` given.

    Raises CannotStart when there is no such command.
    """
    with _Signals() as signals:
        child = _start(list(command), dict(environment), directory)
        signals.send_to(child)
        ended = threading.Event()
        threading.Thread(target=_await, args=(child, ended), name="misstep-wait", daemon=True).start()
        while not ended.wait(seconds):
            tick()
        signals.child = None
    code = child.returncode
    return code if code >= 0 else 128 - code


def signal_of(exit_code: int) -> str:
    """The signal behind an exit code, SIGKILL for 137; empty when it is no signal's."""
    try:
        return signal.Signals(exit_code - 128).name if exit_code > 128 else ""
    except ValueError:
        return ""


def _start(command: list[str], environment: dict[str, str], directory: str | None) -> subprocess.Popen[bytes]:
    try:
        try:
            return subprocess.Popen(command, env=environment, cwd=directory)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            shell = ["/bin/sh", *command]  # a script without #!, as a shell runs it
            return subprocess.Popen(shell, env=environment, cwd=directory)
    except FileNotFoundError as error:
        raise CannotStart(error.strerror or str(error), NOT_FOUND) from None
    except OSError as error:
        raise CannotStart(error.strerror or str(error), NOT_EXECUTABLE) from None


def _await(child: subprocess.Popen[bytes], ended: threading.Event) -> None:
    child.wait()
    ended.set()


class _Signals:
    """While the child lives, signals meant for it do not end us."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        for name in _PASSED_ON:
            number = getattr(signal, name, None)
            # A signal ignored when we started (nohup, a background job) must stay ignored in the child: a handler of
            # ours would be reset to the default there.
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def send_to(self, child: subprocess.Popen[bytes]) -> None:
        """The child is there; it also gets what arrived while it was being started."""
        self.child = child
        for number in self._early:
            self._pass_on(number)

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self.child is None:
            self._early.append(number)
        else:
            self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        if signal.Signals(number).name in _FROM_KEYBOARD and _in_the_foreground():
            return  # the terminal sent it to the child as well
        if self.child is not None:
            try:
                self.child.send_signal(number)
            except OSError:
                pass  # it ended just now


def _in_the_foreground() -> bool:
    """True when the keyboard's signals go to our process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
