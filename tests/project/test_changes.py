"""Every fragment in changes.d is one that towncrier puts into CHANGELOG.md."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOWNCRIER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
TYPES = [kind["directory"] for kind in TOWNCRIER["type"]]
NAMED = re.compile(rf"(?:\+[a-z0-9-]+|\d+)\.({'|'.join(TYPES)})(?:\.\d+)?\.md")
FRAGMENTS = sorted((ROOT / "changes.d").iterdir())


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_has_a_name_and_a_text_towncrier_takes(fragment: Path) -> None:
    assert NAMED.fullmatch(fragment.name), (
        f"rename changes.d/{fragment.name} to changes.d/+{fragment.stem.split('.')[0].lstrip('+')}.TYPE.md; "
        f"types: {', '.join(TYPES)}; a second fragment of the same name ends in .TYPE.1.md"
    )
    text = fragment.read_text(encoding="utf-8")
    assert text.strip()
    assert not re.search(r"^- ", text, re.MULTILINE), "no leading '- ': towncrier adds it; one file for each entry"


def test_the_changelog_assembled_now_has_the_text_of_every_fragment() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "0.0.0", "--dir", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    missing = [f.name for f in FRAGMENTS if f.read_text(encoding="utf-8").splitlines()[0] not in done.stdout]
    assert not missing
    assert TOWNCRIER["start_string"].strip() in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
