"""One session for the whole process, made when first asked for and ended with the process."""

from __future__ import annotations

import atexit
import sys
import threading
from types import TracebackType
from typing import Any, NoReturn

from misstep.adapters.registry import adapter_for
from misstep.capture.session import Session
from misstep.settings import Settings


def attach(model: object, optimizer: object | None = None, **settings: Any) -> Session:
    """Watch the training of this model from inside a script or a notebook; the loop stays as it is.

    >>> session = misstep.attach(model, optimizer)
    >>> with misstep.attach(model, optimizer, level="op", steps="100:110") as session: ...
    """
    adapter = adapter_for(model)
    session = session_for_process(Settings.load(**settings) if settings else None)
    session.use(adapter)
    adapter.adopt(model, optimizer)
    return session


def session_for_process(settings: Settings | None = None) -> Session:
    """The one session of this process, made when first asked for, ended with the process."""
    if _session and not _session[0].ended:
        return _session[0]
    _session[:] = [Session(settings)]
    if not _at_exit:
        _at_exit.append(sys.excepthook)
        sys.excepthook = _uncaught
        _watch_exit()
        atexit.register(_process_ends)
    return _session[0]


def live_session() -> Session | None:
    """The session of this process when there is one; unlike the above, none is made."""
    return _session[0] if _session and not _session[0].ended else None


_session: list[Session] = []
_at_exit: list[Any] = []
_uncaught_error: list[BaseException] = []


def _uncaught(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    _uncaught_error.append(error)
    _at_exit[0](kind, error, where)


def _watch_exit() -> None:
    """`sys.exit` leaves no other trace of its code inside the process."""
    original = sys.exit

    def exit(status: Any = None, /) -> NoReturn:
        # In a thread it ends the thread, and is nobody's business.
        if threading.current_thread() is threading.main_thread():
            for session in _session:
                try:
                    session.exiting(status, sys._getframe(1))
                except Exception as error:
                    session.trouble("at sys.exit", error)
        original(status)

    sys.exit = exit


def _process_ends() -> None:
    for session in _session:
        try:
            if _uncaught_error:
                session.failed(_uncaught_error[0])
            code = 1 if _uncaught_error else session.recorder.exit_code if session.recorder is not None else 0
            session.end("failed" if code else "finished", code)
        except Exception as error:  # the program is over; say it and let it go
            print(f"misstep: could not write the end of the run: {error}", file=sys.stderr)
