"""The crash page's addresses, over a run that ended with an exception and left what a recorder leaves."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.core import cells
from misstep.core.address import Address
from misstep.core.graph import Node
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.hub import RunningHub
from misstep.store.bundle.ring import Ring
from misstep.store.bundle.write import write_bundle
from misstep.store.codec import to_json
from misstep.store.journal import seal
from misstep.store.layout import rank_paths
from misstep.store.writing.writer import RunWriter

REPORT = {
    "kind": "exception",
    "time": 1000.0,
    "step": 3,
    "phase": "forward",
    "type": "RuntimeError",
    "text": "mat1 and mat2 shapes cannot be multiplied (48x9 and 8x32)",
    "node": "fc",
    "memory": {"rss": 1 << 28, "peak": 1 << 29},
    "random": {"torch": "b41535f09beb8d2e"},
    "frames": [{"file": "train.py", "line": 7, "function": "main", "code": "y = fc(x)", "locals": {"x": "float32"}}],
    "threads": [{"thread": "loader", "main": False, "frames": [{"file": "data.py", "line": 2, "code": "read()"}]}],
    "holders": [{"name": "fc.weight", "kind": "weight", "bytes": 1024, "dtype": "float32", "shape": [8, 32]}],
}


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A run directory as a training leaves it whose third step raised in `fc`."""
    run = tmp_path / "broken"
    info = RunInfo(name="broken", command=("python", "train.py"), started=900.0, versions={"torch": "2.13.0"})
    writer = RunWriter(run, 0, info)
    writer.add_node(Node(0, "fc", "module", "Linear", order=1))
    writer.add_node(Node(1, "head", "module", "Linear", order=2))
    for step, elements in ((1, 2), (2, 3 << 20)):
        writer.tensor(Address("fc", step=step), np.ones(elements, np.float32), "float32", (elements,))
    paths = rank_paths(run, 0)
    ring = Ring(paths.ring, slots=4, slot_bytes=4096)
    for step in (1, 2):
        writer.step(Step(step, loss=1 / step, seconds=0.1, time=900.0 + step), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
        told = {"step": step, "time": 900.0 + step, "seconds": 0.1, "loss": 1 / step, "memory": {"rss": step << 20}}
        ring.put(to_json(told))
    ring.cells[cells.STEP], ring.cells[cells.PHASE] = 3, cells.FORWARD
    ring.cells[cells.ENTERED], ring.cells[cells.TRAIL + 1] = 1, 5
    paths.modules.write_bytes(seal({"id": 5, "name": "fc", "type": "Linear"}))
    paths.reports.write_bytes(seal(REPORT))
    writer.end("failed", 1)
    return run


def ask(hub: RunningHub, path: str, *, method: str = "GET") -> Any:
    request = urllib.request.Request(f"{hub.url}/api/v1/runs/{path}", method=method)
    request.add_header("X-Misstep-Token", hub.token)
    with urllib.request.urlopen(request, timeout=20) as answer:
        body = answer.read()
    return json.loads(body) if answer.headers["content-type"] == "application/json" else body


def test_a_record_is_explained_with_cause_place_stacks_and_memory(hub: RunningHub, failed: Path) -> None:
    write_bundle(failed, kind="crash", environment={})
    (brief,) = ask(hub, "broken/records")["records"]
    report = ask(hub, f"broken/records/{brief['id']}")
    (ending,) = report["endings"]
    assert (ending["culprit"], ending["event"]["name"], ending["last_step"]) == (True, "RuntimeError", 2)
    assert ending["spot"]["source"] == "train.py:7"
    assert [cause["id"] for cause in report["causes"]] == ["matmul-shapes"]
    assert (report["reached"]["first"], report["reached"]["last"], report["reached"]["total"]) == (1, 1, 2)
    assert [(one["name"], one["main"]) for one in report["threads"]] == [("MainThread", True), ("loader", False)]
    assert report["threads"][0]["frames"][0]["locals"] == {"x": "float32"}
    assert [step["memory"]["rss"] for step in report["steps"]] == [1 << 20, 2 << 20]
    assert (report["holders"][0]["name"], report["random"]) == ("fc.weight", REPORT["random"])
    assert report["values"] == [{"address": "fc:output@1#0", "dtype": "float32", "shape": [2]}]
    assert report["left_out"] == 1  # 12 MB had no room
    assert ask(hub, "broken")["records"] == ["crash"]


def test_causes_and_events_come_in_the_language_that_is_asked_for(hub: RunningHub, failed: Path) -> None:
    write_bundle(failed, kind="crash", environment={})
    told = [ask(hub, f"broken/records/crash?lang={lang}") for lang in ("en", "zh", "en")]
    titles = [one["causes"][0]["title"] for one in told]
    assert titles[0] == titles[2] != titles[1]
    assert titles[1].isascii() is False
    ends = [one["events"][-1]["text"] for one in told]
    assert ends == ["failed, exit code 1", "失败，退出码 1", "failed, exit code 1"]


def test_the_bundle_itself_can_be_taken_elsewhere(hub: RunningHub, failed: Path) -> None:
    write_bundle(failed, kind="crash", environment={})
    with zipfile.ZipFile(io.BytesIO(ask(hub, "broken/records/crash/zip"))) as archive:
        assert {"manifest.json", "rank-0/record.json"} <= set(archive.namelist())


def test_a_run_that_is_over_without_a_record_gets_one_when_asked(hub: RunningHub, failed: Path) -> None:
    before = ask(hub, "broken/records")
    assert (before["records"], before["can_make"]) == ([], True)
    made = ask(hub, "broken/records", method="POST")
    assert [one["id"] for one in made["records"]] == ["crash"]


@pytest.mark.parametrize("name", ["hang", "..%2f..%2frun", "crash.zip"])
def test_only_records_of_the_list_can_be_asked_for(hub: RunningHub, failed: Path, name: str) -> None:
    write_bundle(failed, kind="crash", environment={})
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(hub, f"broken/records/{name}")
    assert refused.value.code == 404
