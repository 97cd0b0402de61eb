"""A real PostgreSQL in a temporary directory, run by an unprivileged user, reached over a Unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

USERS = ("postgres", "nobody")


class Postgres:
    """A server of our own; `restart` is a crash and a recovery."""

    def __init__(self, *, listen: str = "", inside: Sequence[str] = ()) -> None:
        """`listen`: an address besides the socket; `inside`: what runs a command where that address is."""
        self._listen, self._inside = listen, inside
        self.folder = Path(tempfile.mkdtemp(prefix="misstep-pg-"))
        self._as: list[str] = []
        if os.getuid() == 0:
            user = next(name for name in USERS if exists(name))
            shutil.chown(self.folder, user)
            self._as = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]
        self._call("initdb", "-D", str(self.data), "-U", "tuner", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://tuner@/postgres?host={self.folder}"

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='{self._listen}' -c fsync=off -c max_connections=200"
        log = str(self.folder / "log")
        if self._listen:
            with open(self.data / "pg_hba.conf", "a", encoding="utf-8") as file:
                file.write(f"host all all {self._listen}/24 trust\n")
        self._call("pg_ctl", "-D", str(self.data), "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGQUIT)
            self._call("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")
        except (OSError, subprocess.CalledProcessError):
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str) -> None:
        found = shutil.which(program) or next(
            str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)
        )
        # Its output to files and not pipes: the server inherits them and would keep a pipe open for ever.
        with open(os.devnull, "wb") as nothing:
            words = [*self._inside, *self._as, found, *arguments]
            subprocess.run(words, check=True, cwd="/", stdout=nothing, stderr=nothing, timeout=120)


def exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
