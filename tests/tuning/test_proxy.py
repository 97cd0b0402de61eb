"""Workers behind a gRPC proxy on a loopback address: the database is reached by the proxy alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import misstep
from ports import free_port

pytestmark = pytest.mark.story
STUDY = """
study: proxied
command: [sh, -c, "echo value {x}"]
parameters: {x: {low: 0.0, high: 1.0}}
target: {name: value, pattern: 'value ([0-9.e-]+)'}
tuner: random
trials: 6
"""


def test_two_machines_share_a_study_through_a_proxy(tmp_path: Path) -> None:
    port = free_port("127.0.0.2")
    environment = {**os.environ, "PYTHONPATH": str(Path(misstep.__file__).parents[1])}
    (tmp_path / "study.yaml").write_text(STUDY)
    tune = [sys.executable, "-m", "misstep", "tune"]
    storage = f"sqlite:///{tmp_path / 's.db'}"
    server = subprocess.Popen(
        [*tune, "serve", storage, "--host", "127.0.0.2", "--port", str(port)],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert "grpc://127.0.0.2" in server.stdout.readline()
        workers = [
            subprocess.Popen(
                [*tune, "study.yaml", "--storage", f"grpc://127.0.0.2:{port}"], env=environment, cwd=tmp_path
            )
            for _ in range(2)
        ]
        assert [worker.wait(120) for worker in workers] == [0, 0]
    finally:
        server.terminate()
        server.wait()
    told = subprocess.run([*tune, "status", f"{storage}#proxied", "--json"], env=environment, cwd=tmp_path,
                          capture_output=True, text=True, check=True)  # fmt: skip
    trials = json.loads(told.stdout)["trials"]
    # Without a lock both may begin the last trial; the later one is left without being run.
    done = [trial for trial in trials if trial["state"] != "surplus"]
    assert [trial["state"] for trial in done] == ["complete"] * 6
    assert len({trial["params"]["x"] for trial in done}) == 6
