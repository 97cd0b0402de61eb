"""A storage of Optuna behind an address, and a lock that all its workers share.

    connection.storage          every call waits out a storage that is away (steady.py); there is no other way to it
    connection.section(action)  action under the lock; a storage that goes away inside it ends the section, which is
                                then begun anew under a new lock, for the old one went with the server

The lock is the kernel's for a file, the server's for PostgreSQL and MySQL: whoever is killed inside it lets go. A gRPC
proxy has none; there the server sweeps.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from misstep.errors import MissingPackage, TuneError, need
from misstep.sentences import tune as sentences
from misstep.tuning.storage.journal import JournalFile, locked
from misstep.tuning.storage.places import Place, is_known, shown

Check = Callable[[], None]
"""Raises when the lock is no longer held."""
Lock = Callable[[], contextlib.AbstractContextManager[Check]]
T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
FIRST_SECONDS = 5.0
"""How long a database that was never reached from here may refuse connections: its address is probably wrong."""
LOCK_SECONDS = 120
"""A server takes the lock away from a worker that does nothing with it for so long: its machine has been cut off."""
PATIENCE_VARIABLE = "MISSTEP_TUNE_PATIENCE"


class Connection:
    """A storage that can be reached."""

    def __init__(self, place: Place, *, patience: float | None = None) -> None:
        self.place = place
        self.patience = float(os.environ.get(PATIENCE_VARIABLE, 300)) if patience is None else patience
        """Seconds to wait for a storage that is away or full, before giving up."""
        self.say: Callable[[str], None] = lambda text: None
        """Is given the sentence that the storage is away."""
        self.has_lock = True
        self.backend: Any
        """Optuna's own storage, for the one who serves it to others."""
        self._lock: Lock
        self._held = _Held()
        self._reach()
        from misstep.tuning.storage.steady import Steady  # Optuna is an extra

        self.storage = Steady(self.backend, self)

    def _reach(self) -> None:
        """Connect; a database that happens to restart at this moment is waited for."""
        begin = time.monotonic()
        while True:
            try:
                return self._connect()
            except TuneError as error:
                away = error.__cause__ is not None and is_away(error.__cause__)
                longest = self.patience if is_known(self.place) else min(self.patience, FIRST_SECONDS)
                if not away or time.monotonic() - begin > longest:
                    raise
                time.sleep(LONGEST_WAIT / 5)

    def steadily(self, action: Callable[[], T]) -> T:
        """Do it, and do it again while the storage is away (a restart, a full disk), for as long as patience lasts.

        Inside a section it is done once: what fails there ends the section.
        """
        if self._held.check is not None:
            return action()
        begin, wait, told = time.monotonic(), FIRST_WAIT, False
        while True:
            try:
                return action()
            except Exception as error:
                if not is_away(error) or time.monotonic() - begin > self.patience:
                    raise
                if not told:
                    self.say(sentences.AWAY.of(storage=shown(self.place.storage), why=first_line(error)))
                    told = True
                time.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)

    def section(self, action: Callable[[bool], T]) -> T:
        """Do it under the lock, from its beginning if the storage goes away meanwhile.

        The action is given True when it was begun before: what it wrote then may have arrived.
        """
        begun = False

        def once() -> T:
            nonlocal begun
            again, begun = begun, True
            with self._lock() as check:
                self._held.check = check
                try:
                    return action(again)
                finally:
                    self._held.check = None

        return self.steadily(once)

    def check_lock(self) -> None:
        """Before something is written inside a section: OperationalError when its lock went with the server."""
        if self._held.check is not None:
            self._held.check()

    def _connect(self) -> None:
        kind = self.place.storage.partition("://")[0] if not self.place.is_file else "file"
        try:
            if kind == "file":
                self._journal(Path(self.place.storage))
            elif kind == "grpc":
                self._proxy()
            else:
                self._database(kind)
        except (TuneError, MissingPackage):
            raise
        except Exception as error:
            what = sentences.UNREACHABLE.of(storage=shown(self.place.storage), why=first_line(error))
            raise TuneError(what) from error

    def _journal(self, path: Path) -> None:
        optuna = need("optuna", "for tuning", extra="tune")
        self.backend = optuna.storages.JournalStorage(JournalFile(path))
        guard = path.with_name(f".{path.name}.lock")
        self._lock = lambda: _file_lock(guard)

    def _proxy(self) -> None:
        need("grpc", "for grpc:// storages", extra="tune")
        optuna = need("optuna", "for tuning", extra="tune")
        address = urlsplit(self.place.storage)
        self.backend = optuna.storages.GrpcStorageProxy(
            host=address.hostname or "localhost", port=address.port or 13000
        )
        self.backend.wait_server_ready(timeout=10)
        self.has_lock = False
        self._lock = _no_lock

    def _database(self, kind: str) -> None:
        optuna = need("optuna", "for tuning", extra="tune")
        sqlalchemy = need("sqlalchemy", "for databases", extra="tune")
        url = with_driver(self.place.storage)
        # Who only reads is spared an old connection. A worker must hear of a restart: its lock went with the server.
        engine_kwargs: dict[str, Any] = {"pool_pre_ping": self.patience == 0}
        if kind.startswith("sqlite"):
            path = Path(sqlalchemy.engine.make_url(url).database or "study.db")
            path.parent.mkdir(parents=True, exist_ok=True)
            engine_kwargs["connect_args"] = {"timeout": 60}
            self._lock = lambda: _file_lock(path.with_name(f".{path.name}.lock"))
        else:
            engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
            self._lock = lambda: _server_lock(engine, sqlalchemy.text, kind)
        with self._lock():  # workers that start together make the tables once
            database = optuna.storages.RDBStorage(url, engine_kwargs=engine_kwargs)
        self.backend = optuna.storages.get_storage(database)  # trials that have ended are read once


def with_driver(url: str) -> str:
    """A URL with a driver that is installed: psycopg for PostgreSQL, PyMySQL for MySQL."""
    scheme, colon, rest = url.partition("://")
    drivers = {"postgresql": "psycopg", "postgres": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}
    if scheme not in drivers:
        return url
    need(drivers[scheme], f"for {scheme}:// storages", extra="tune")
    name = "postgresql" if scheme == "postgres" else scheme
    return f"{name}+{drivers[scheme]}{colon}{rest}"


_AWAY = {
    "OperationalError", "InterfaceError", "DisconnectionError", "ResourceClosedError", "PendingRollbackError",
    "TimeoutError",
}  # fmt: skip
"""Errors of SQLAlchemy that a restart, a full disk or a busy lock makes."""
_REFUSED = ("UNIMPLEMENTED", "INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED")


def is_away(error: BaseException) -> bool:
    """True when the same call may work in a moment: the server restarts, the disk is full, the lock was busy."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if names & _AWAY:
        return True
    if "RpcError" in names:
        code = getattr(error, "code", lambda: None)()
        return getattr(code, "name", "") not in _REFUSED
    if error.__cause__ is not None and is_away(error.__cause__):
        return True
    if "StorageInternalError" in names:
        return error.__cause__ is None  # Optuna's word for any trouble; its cause says more, where there is one
    return isinstance(error, OSError) and not isinstance(error, (FileNotFoundError, PermissionError))


def first_line(error: BaseException) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return str(cause).strip().partition("\n")[0] or type(cause).__name__


class _Held(threading.local):
    """The lock that this thread holds."""

    check: Check | None = None


@contextlib.contextmanager
def _file_lock(path: Path) -> Iterator[Check]:
    with locked(path):
        yield lambda: None


@contextlib.contextmanager
def _no_lock() -> Iterator[Check]:
    yield lambda: None


@contextlib.contextmanager
def _server_lock(engine: Any, text: Callable[[str], Any], kind: str) -> Iterator[Check]:
    """Held by a connection of its own; the server lets go when that ends, however it ends."""
    key = zlib.crc32(b"misstep")
    with engine.connect() as connection:
        if kind.startswith("postgres"):
            for setting in ("idle_in_transaction_session_timeout = '{}s'", "tcp_keepalives_idle = {}"):
                connection.execute(text("SET " + setting.format(LOCK_SECONDS)))
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": key})
        else:
            connection.execute(text(f"SET SESSION wait_timeout = {LOCK_SECONDS}"))
            took = connection.execute(text("SELECT GET_LOCK(:key, :wait)"), {"key": f"misstep-{key}", "wait": 60})
            if took.scalar() != 1:
                raise TimeoutError(sentences.LOCK_BUSY.of(seconds=60))
        yield lambda: connection.execute(text("SELECT 1"))
