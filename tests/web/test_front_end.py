"""The web front end from Python's side: its types are current, it compiles, and a real browser gets along with it.

The browser needs Debian's chromium (`make browser`) and Node; where one of them is missing the tests fail and say so.
`make test` installs them; `make test-fast` leaves these tests out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from misstep.protocol.typescript import FILE, typescript

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
CHROMIUM = Path(os.environ.get("MISSTEP_CHROMIUM", "/usr/bin/chromium"))
BROWSER_SECONDS = 500
"""Far more than the journeys take on two idle cores: whoever shares them with others waits."""


def npm(*arguments: str, seconds: int = 200) -> None:
    """Run a script of web/package.json; its whole output is the message when it fails."""
    if shutil.which("npm") is None:
        pytest.fail("Node is missing: the front end cannot be checked without npm")
    if not (WEB / "node_modules").is_dir():
        pytest.fail("web/node_modules is missing: run `make web`")
    environment = {**os.environ, "MISSTEP_PYTHON": sys.executable}
    command = ["npm", "run", "--silent", *arguments]
    done = subprocess.run(command, cwd=WEB, env=environment, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_message_types_of_the_page_are_those_of_python() -> None:
    """Otherwise:  python -m misstep.protocol.typescript --write"""
    assert FILE.read_text(encoding="utf-8") == typescript()


@pytest.mark.ui
def test_the_front_end_compiles_with_every_word_in_both_languages() -> None:
    npm("check")


@pytest.mark.ui
def test_the_front_ends_own_tests_pass() -> None:
    npm("test")


@pytest.mark.ui
@pytest.mark.timeout(BROWSER_SECONDS + 20)
@pytest.mark.slow
def test_a_person_gets_through_every_journey_in_a_real_browser() -> None:
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: run `make browser`")
    if not (ROOT / "src" / "misstep" / "hub" / "static" / "index.html").is_file():
        pytest.fail("the page was not built: run `make web`")
    npm("e2e", seconds=BROWSER_SECONDS)
