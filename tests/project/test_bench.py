"""Every benchmark speaks one language: `--json` prints one object of a control and rows, and nothing else."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [page for page in sorted((ROOT / "bench").glob("*.py")) if "__main__" in page.read_text(encoding="utf-8")]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT / "bench")))}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=240)


def measured(*command: str) -> dict[str, object]:
    done = run(*command)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_benchmark_reports_through_the_shared_helper(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called & {"bench", "report"}


def test_the_report_has_a_control_and_rows_of_three_fields() -> None:
    rows = '[{"case": "a", "value": 2, "unit": "x", "limit": 3}]'
    found = measured("-c", f"from measure import report; report(1.00004, {rows}, as_json=True)")
    assert found == {"control": 1.0, "rows": [{"case": "a", "value": 2.0, "unit": "x"}]}


def test_what_is_printed_while_measuring_is_not_in_the_report() -> None:
    script = """
import os
from measure import bench, options

def noisy(given):
    print("from Python")
    os.write(1, b"from native code")
    os.system("echo from a child")
    return 1.0, []

bench(options(""), noisy)
"""
    assert measured("-c", script, "--json") == {"control": 1.0, "rows": []}


@pytest.mark.story
def test_a_real_benchmark_prints_one_object() -> None:
    found = measured(
        str(ROOT / "bench/train.py"),
        *["--json", "--framework", "torch", "--rounds", "1", "--steps", "1", "--batch", "2"],
    )
    assert set(found) == {"control", "rows"}
    assert isinstance(found["rows"], list)
    assert found["rows"]
    assert all(set(row) == {"case", "value", "unit"} for row in found["rows"])
