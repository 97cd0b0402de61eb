"""Two machines, each a network namespace of its own, share a study in a PostgreSQL on a third; one loses its power.

Neither sees the other's processes as its own host's: the names differ, so a dead worker is known by its beat alone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from database import Postgres

import misstep

pytestmark = [
    pytest.mark.story,
    pytest.mark.skipif(
        os.getuid() != 0 or shutil.which("ip") is None, reason="namespaces of the network are made by root"
    ),
]

STUDY = """
study: shared
command: [sh, -c, "until [ -e go ]; do sleep 0.1; done; hostname > $MISSTEP_RUN/host; echo value {x}"]
parameters: {x: {low: 0.0, high: 1.0}}
target: {name: value, pattern: 'value ([0-9.e-]+)'}
tuner: random
trials: 6
heartbeat: 0.5s
grace: 4s
"""


class Network:
    """A bridge in a namespace of its own, with machines on it."""

    def __init__(self, *machines: str) -> None:
        self._made: list[str] = []
        self._middle = self._space("middle")
        self._ip("-n", self._middle, "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self._middle, "link", "set", "bridge", "up")
        for at, machine in enumerate(machines):
            self._add(machine, f"10.77.0.{at + 1}")

    def command(self, machine: str, *words: str) -> list[str]:
        """A command as that machine runs it, under its own host name."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', machine, *words]
        return ["ip", "netns", "exec", self._name(machine), *named]

    def close(self) -> None:
        for space in self._made:
            subprocess.run(["ip", "netns", "del", space], check=False)

    def _add(self, machine: str, address: str) -> None:
        space = self._space(machine)
        self._ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", machine, "netns", self._middle)
        self._ip("-n", self._middle, "link", "set", machine, "master", "bridge")
        self._ip("-n", self._middle, "link", "set", machine, "up")
        self._ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            self._ip("-n", space, "link", "set", device, "up")

    def _space(self, machine: str) -> str:
        space = self._name(machine)
        self._ip("netns", "add", space)
        self._made.append(space)
        return space

    def _name(self, machine: str) -> str:
        return f"misstep-{os.getpid()}-{machine}"

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network("db", "left", "right")
    yield made
    made.close()


def test_a_machine_that_loses_its_power_loses_no_trial(network: Network, tmp_path: Path) -> None:
    server = Postgres(listen="10.77.0.1", inside=network.command("db"))
    try:
        (tmp_path / "study.yaml").write_text(STUDY)
        environment = {**os.environ, "PYTHONPATH": str(Path(misstep.__file__).parents[1])}
        tune = [sys.executable, "-m", "misstep", "tune"]
        url = "postgresql://tuner@10.77.0.1/postgres"

        def worker(machine: str) -> subprocess.Popen[bytes]:
            words = network.command(machine, *tune, "study.yaml", "--storage", url)
            return subprocess.Popen(words, cwd=tmp_path, env=environment, start_new_session=True)

        left, right = worker("left"), worker("right")
        runs = tmp_path / "missteps"
        while len(list(runs.glob("shared-*/output.txt"))) < 2:  # each has begun one, and it waits for `go`
            assert left.poll() is None
            assert right.poll() is None
        os.killpg(left.pid, signal.SIGKILL)
        left.wait()
        (tmp_path / "go").touch()
        assert right.wait(240) == 0
        told = subprocess.run(
            network.command("right", *tune, "status", f"{url}#shared", "--json"),
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        trials = json.loads(told.stdout)["trials"]
        stale = [trial for trial in trials if trial["state"] == "stale"]
        assert [trial["state"] for trial in trials if trial not in stale] == ["complete"] * 6
        assert [again["params"] for again in trials if "retry_of" in again] == [lost["params"] for lost in stale]
        assert len(stale) == 1
    finally:
        server.close()
