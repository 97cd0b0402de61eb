"""kill -9, a restarted database and a full disk: every trial is accounted for, none is doubled."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from database import Postgres
from killing import check, kill_at_random
from mariadb import MariaDB

from misstep.tuning.studyfile import parse_study
from misstep.tuning.worker import News, Worker

pytestmark = pytest.mark.story


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


def test_killed_workers_of_a_journal_lose_nothing(tmp_path: Path) -> None:
    table = kill_at_random(tmp_path, kills=6, trials=16, seed=1)
    check(table, 16)


def test_killed_workers_of_postgresql_and_its_restart_lose_nothing(tmp_path: Path, postgres: Postgres) -> None:
    def restart(killed: int) -> None:
        if killed == 3:
            postgres.restart()

    table = kill_at_random(tmp_path, storage=postgres.url, kills=6, trials=16, seed=2, meanwhile=restart)
    check(table, 16)


@pytest.mark.slow
def test_killed_workers_of_mysql_and_its_restart_lose_nothing(tmp_path: Path) -> None:
    server = MariaDB()
    try:
        table = kill_at_random(
            tmp_path,
            storage=server.url,
            kills=4,
            trials=10,
            seed=3,
            meanwhile=lambda killed: server.restart() if killed == 2 else None,
        )
        check(table, 10)
    finally:
        server.close()


@pytest.mark.skipif(shutil.which("mount") is None or subprocess.run(["id", "-u"], capture_output=True).stdout != b"0\n",
                    reason="a small disk is mounted by root")  # fmt: skip
def test_a_full_disk_makes_a_study_wait_and_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    try:
        filler = disk / "filler"
        text = """
command: [sh, -c, "echo value {x}"]
parameters: {x: {low: 0.0, high: 1.0}}
target: {name: value, pattern: 'value ([0-9.e-]+)'}
trials: 6
"""
        said: list[str] = []

        def hear(news: News) -> None:
            said.append(news.text or news.kind)
            if news.kind == "ended" and news.number == 2:
                with filler.open("wb", buffering=0) as file:
                    try:
                        while True:
                            file.write(b"x" * 4096)
                    except OSError:
                        pass
            if news.kind == "note":
                filler.unlink()

        worker = Worker(
            parse_study(text, "full.yaml"), base=str(tmp_path / "runs"), storage=str(disk / "s.journal"), listen=hear
        )
        trials = worker.run().trials()
        assert any("No space left" in text for text in said)
        assert [trial.state.name for trial in trials] == ["COMPLETE"] * 6
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
