"""A user's afternoon in miniature: a real script, in a process of its own, under the real `misstep run`."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from story import MISSTEP, SECONDS, Result, RunCommand, RunStory, Write, environment_of_a_user


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """write("train.py", text) puts a file into the story's folder."""

    def put(name: str, text: str) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return put


@pytest.fixture
def misstep_command(folder: Path) -> RunCommand:
    def run(*command: str, environment: dict[str, str] | None = None) -> Result:
        done = subprocess.run(
            [*MISSTEP, *command],
            cwd=folder,
            env=environment_of_a_user(**(environment or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Result(done.returncode, done.stdout, done.stderr, folder)

    return run


@pytest.fixture
def run_story(write: Write, misstep_command: RunCommand) -> RunStory:
    def run(script: str, *run_args: str, python: Sequence[str] = (), args: Sequence[str] = ()) -> Result:
        write("train.py", script)
        return misstep_command("run", *run_args, sys.executable, *python, "train.py", *args)

    return run
