"""A real MariaDB in a temporary directory, run by an unprivileged user, reached over TCP on the loopback interface."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from database import USERS, exists

PATIENCE = 120.0


class MariaDB:
    """A server of our own; `restart` is a crash and a recovery."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="misstep-my-"))
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            user = next(name for name in USERS if exists(name))
            shutil.chown(self.folder, user)
            self._as = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._server: subprocess.Popen[bytes] | None = None
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db",
             "--auth-root-authentication-method=normal"],
            check=True, cwd=self.folder, capture_output=True, timeout=PATIENCE, **self._as,
        )  # fmt: skip
        self.start()
        self._ask("CREATE DATABASE studies; CREATE USER tuner@'127.0.0.1'; GRANT ALL ON studies.* TO tuner@'127.0.0.1'")

    @property
    def url(self) -> str:
        return f"mysql://tuner@127.0.0.1:{self.port}/studies"

    def start(self) -> None:
        with open(self.folder / "log", "ab") as log:
            self._server = subprocess.Popen(
                ["mariadbd", "--no-defaults", f"--datadir={self.folder / 'data'}", f"--socket={self.folder / 'socket'}",
                 f"--port={self.port}", "--bind-address=127.0.0.1", f"--pid-file={self.folder / 'pid'}",
                 "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2", "--skip-name-resolve"],
                cwd=self.folder, stdout=log, stderr=log, **self._as,
            )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._ask("SELECT 1")
            except (subprocess.CalledProcessError, FileNotFoundError):
                assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.1)

    def stop(self) -> None:
        assert self._server is not None
        self._server.kill()
        self._server.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, statement: str) -> None:
        subprocess.run(
            ["mariadb", "--no-defaults", f"--socket={self.folder / 'socket'}", "-u", "root", "-e", statement],
            check=True, capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
