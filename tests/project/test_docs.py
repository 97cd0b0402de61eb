"""What the documents tell people to type works when typed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARKED = re.compile(r"<!-- test: (\w+) -->\n```(?:console|python)\n(.*?)```", re.DOTALL)
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
PAIRED = [page for page in PAGES if not page.name.endswith(".zh.md")]
ENGLISH_ONLY = {"format.md", "protocol.md", "cost.md"}
"""Reference for people who write code against misstep; the Chinese pages link to them."""


def pages_with_snippets() -> list[Path]:
    return [page for page in PAGES if MARKED.search(page.read_text(encoding="utf-8"))]


@pytest.mark.story
@pytest.mark.parametrize("page", pages_with_snippets(), ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_in_their_order(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # `python` in a study file
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "MISSTEP_STRICT": "1",
    }
    for kind, text in MARKED.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            commands = [[sys.executable, "-c", text]]
        else:
            typed = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            commands = [_as_run_here(shlex.split(line, comments=True)) for line in typed]
        for command in commands:
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def _as_run_here(command: list[str]) -> list[str]:
    """`misstep` and `python` of this very environment."""
    here = {"misstep": [sys.executable, "-m", "misstep"], "python": [sys.executable]}
    return [word for part in command for word in here.get(part, [part])]


@pytest.mark.parametrize("page", PAIRED, ids=lambda page: page.name)
def test_every_page_for_users_has_a_chinese_twin(page: Path) -> None:
    if page.name not in ENGLISH_ONLY:
        assert page.with_suffix(".zh.md").exists()


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
