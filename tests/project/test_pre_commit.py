"""The hooks before a commit are those of `make lint`, and run without fetching anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / ".pre-commit-config.yaml"


def test_pre_commit_takes_the_configuration() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(CONFIG)]
    assert subprocess.run(command, timeout=60).returncode == 0


def test_every_hook_is_local_and_a_tool_of_make_lint() -> None:
    repos = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["repos"]
    assert {repo["repo"] for repo in repos} == {"local"}
    hooks = [hook for repo in repos for hook in repo["hooks"]]
    assert {hook["language"] for hook in hooks} == {"system"}
    ruff = [hook["entry"] for hook in hooks if "/ruff " in hook["entry"]]
    assert all("--force-exclude" in entry for entry in ruff), "given file names, ruff forgets what it excludes"
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nlint:", 1)[1].split("\n\n", 1)[0]
    tools = {"ruff": "ruff check", "ruff-format": "ruff format", "mypy": "/mypy", "biome": "npm run --silent check"}
    assert {hook["id"] for hook in hooks} == set(tools)
    assert all(command in recipe for command in tools.values())
