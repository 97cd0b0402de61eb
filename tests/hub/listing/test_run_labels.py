"""Tags, notes and pins lie in the run directory; runs nobody needs are deleted, living ones never."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.hub import RunningHub
from misstep.store.labels import Labels, read_labels, write_labels
from misstep.store.listing import RunListing
from misstep.store.writing.writer import RunWriter


def record(folder: Path, name: str, *, started: float = 1.0, end: bool = True) -> RunWriter:
    info = RunInfo(name=name, command=("python", "train.py", "--lr", "3e-4"), started=started)
    writer = RunWriter(folder / name, 0, info)
    writer.step(Step(1, loss=1.0 / 3), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    if end:
        writer.end("finished", 0)
    return writer


def ask(hub: RunningHub, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"X-Misstep-Token": hub.token, "Accept-Encoding": "gzip"}
    request = urllib.request.Request(f"{hub.url}/api/v1/{path}", data, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        told = answer.read()
        return json.loads(gzip.decompress(told) if answer.headers.get("content-encoding") == "gzip" else told)


def test_labels_are_kept_beside_the_record_and_nothing_is_left_of_empty_ones(tmp_path: Path) -> None:
    labels = Labels().edited(add=["base line", "a,b", "base line"], note=" warm-up too short ", pinned=True)
    assert labels == Labels(("base line", "a b"), "warm-up too short", True)
    write_labels(tmp_path, labels)
    assert read_labels(tmp_path) == labels
    write_labels(tmp_path, labels.edited(remove=["base line", "a b"], note="", pinned=False))
    assert list(tmp_path.iterdir()) == []


def test_a_file_somebody_broke_is_no_labels(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text('{"tags": 3')
    assert read_labels(tmp_path) == Labels()


def test_parameters_tags_and_notes_are_in_the_list(hub: RunningHub, tmp_path: Path) -> None:
    record(tmp_path, "one")
    record(tmp_path, "two", started=2.0)
    told = ask(hub, "labels", {"runs": ["one", "two"], "add": ["bug"], "note": "look here", "pinned": True})
    assert [one["tags"] for one in told] == [["bug"], ["bug"]]
    ask(hub, "labels", {"runs": ["two"], "remove": ["bug"], "pinned": False})
    lines = {one["run"]: one for one in ask(hub, "runs")["runs"]}
    assert (lines["one"]["tags"], lines["one"]["note"], lines["one"]["pinned"]) == (["bug"], "look here", True)
    assert (lines["two"]["tags"], lines["two"]["note"], lines["two"]["pinned"]) == ([], "look here", False)
    assert lines["one"]["params"] == {"lr": 3e-4}


def test_the_newest_come_alone_when_asked_for_and_the_total_is_told(hub: RunningHub, tmp_path: Path) -> None:
    for at in range(5):
        record(tmp_path, f"run-{at}", started=float(at))
    told = ask(hub, "runs?newest=2")
    assert ([one["run"] for one in told["runs"]], told["total"]) == (["run-4", "run-3"], 5)


def test_what_has_ended_is_read_once_and_again_when_it_changes(tmp_path: Path) -> None:
    record(tmp_path, "one")
    listing = RunListing(tmp_path)
    first = listing.all()
    assert listing.all()[0] is first[0]
    write_labels(tmp_path / "one", Labels(("x",)))
    assert listing.all()[0].labels.tags == ("x",)


def test_deleting_takes_runs_away_and_leaves_what_lives(hub: RunningHub, tmp_path: Path) -> None:
    record(tmp_path, "old")
    alive = record(tmp_path, "alive", end=False)
    told = ask(hub, "removals", {"runs": ["old", "alive", "../etc"]})
    assert told["runs"] == ["old"]
    assert [one["run"] for one in told["refused"]] == ["alive", "../etc"]
    assert "misstep stop alive" in told["refused"][0]["text"]
    assert told["refused"][0]["text_zh"] != told["refused"][0]["text"]
    assert [one["run"] for one in ask(hub, "runs")["runs"]] == ["alive"]
    assert sorted(path.name for path in tmp_path.iterdir() if "deleted" in path.name or path.name == "old") == []
    alive.end("finished", 0)


def test_nobody_without_the_token_deletes_anything(hub: RunningHub, tmp_path: Path) -> None:
    record(tmp_path, "old")
    request = urllib.request.Request(f"{hub.url}/api/v1/removals", b'{"runs":["old"]}')
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=20)
    assert (tmp_path / "old").is_dir()


def test_long_answers_are_compressed_for_whoever_takes_it(hub: RunningHub, tmp_path: Path) -> None:
    for at in range(8):
        record(tmp_path, f"run-{at}")
    sizes = {}
    for encoding in ("identity", "gzip"):
        headers = {"X-Misstep-Token": hub.token, "Accept-Encoding": encoding}
        request = urllib.request.Request(f"{hub.url}/api/v1/runs", None, headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.headers.get("content-encoding", "identity") == encoding
            sizes[encoding] = len(answer.read())
    assert sizes["gzip"] * 3 < sizes["identity"]
