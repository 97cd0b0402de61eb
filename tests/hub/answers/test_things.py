"""Dumps, checkpoints and comparisons as a browser asks for them."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.cli.commands.live.ui import first_page
from misstep.compare.mapfile import parse_map
from misstep.core.address import Address
from misstep.core.graph import Node, Source, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.hub import RunningHub, start_hub
from misstep.hub.jobs import Jobs
from misstep.store.checkpoint import write_safetensors
from misstep.store.writing.writer import RunWriter

X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
NAMES = ("fc1", "act", "fc2", "head")

Ask = Callable[..., Any]


def recorded(folder: Path, factor: float, names: tuple[str, ...] = NAMES) -> None:
    """Two steps of a small network; from `act` on the values of step 2 are scaled."""
    writer = RunWriter(folder, 0, RunInfo(name=folder.name, command=("python", "train.py"), started=1_794_765_845.0))
    for index, name in enumerate(names):
        writer.add_node(Node(index, name, "module", "Linear", source=Source("train.py", index + 1), order=index + 1))
        writer.add_tensor(TensorKey(index, "output"))
    for step in (1, 2):
        for index, name in enumerate(names):
            value = X * np.float32(index + 1) * np.float32(factor if step == 2 and index else 1.0)
            if name == "head" and step == 2 and factor != 1:
                value[0, 0] = np.nan
            writer.tensor(Address(name, step=step), value, "float32", value.shape)
        writer.step(Step(step, loss=1.0, time=1000.0), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    writer.event("dump", id=1, text="*:output@1:2", saved="tensor")
    writer.event("lost", counts={"tensor": 3}, tensors=["fc1:output@3 (buffer full)"], new=3, step=3)
    writer.end("finished", 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("things")
    runs = folder / "missteps"
    runs.mkdir()
    recorded(runs / "one", 1.0)
    recorded(runs / "other", 1.5)
    recorded(runs / "renamed", 1.0, ("layer1", "layer2", "layer3", "head"))
    weights = {"fc.weight": X, "fc.bias": X[0], "optimizer.exp_avg": X * 0}
    write_safetensors(runs / "a.safetensors", weights)
    write_safetensors(runs / "b.safetensors", {**weights, "fc.bias": np.full(8, np.nan, np.float32), "new.weight": X})
    (runs / "arrays").mkdir()
    np.save(runs / "arrays" / "fc1.npy", X)
    np.save(runs / "arrays" / "fc2.npy", X * np.float32(np.inf))
    outside = folder / "outside"
    outside.mkdir()
    write_safetensors(outside / "secret.safetensors", weights)
    write_safetensors(outside / "given.safetensors", weights)
    os.symlink(outside / "secret.safetensors", runs / "way-out.safetensors")
    return folder


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[RunningHub]:
    with start_hub(place / "missteps", things=[place / "outside" / "given.safetensors"]) as running:
        yield running


@pytest.fixture(scope="module")
def ask(served: RunningHub) -> Ask:
    """JSON of an address; `status` when it is to be refused, `raw` for bytes."""

    def send(path: str, body: Any = None, *, status: int = 200, raw: bool = False, **query: Any) -> Any:
        parts = urllib.parse.urlsplit(served.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=30)
        text = f"/api/v1/{path}?{urllib.parse.urlencode(query)}"
        headers = {"X-Misstep-Token": served.token}
        connection.request(
            "GET" if body is None else "POST", text, json.dumps(body) if body is not None else None, headers
        )
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status == status, data[:500]
        return data if raw else json.loads(data)

    return send


def finished(ask: Ask, job: dict[str, Any]) -> dict[str, Any]:
    """The job when it has ended."""
    while job["state"] in ("waiting", "running"):
        job = ask(f"jobs/{job['id']}", wait=10)
    return job


def compared(ask: Ask, a: str, b: str, map: str = "") -> dict[str, Any]:
    job = finished(ask, ask("comparisons", {"a": a, "b": b, "map": map}))
    assert job["state"] == "done", job
    table: dict[str, Any] = ask(f"comparisons/{job['id']}")
    return table


def test_runs_dumps_and_checkpoints_are_listed_by_names_of_the_hubs_own(ask: Ask) -> None:
    found = {one["name"]: one["kind"] for one in ask("things")["things"]}
    assert found == {
        "one": "run",
        "other": "run",
        "renamed": "run",
        "given.safetensors": "checkpoint",
        "a.safetensors": "checkpoint",
        "b.safetensors": "checkpoint",
        "arrays": "dump",
    }


@pytest.mark.parametrize(
    "name",
    [
        "../outside/secret.safetensors",
        "way-out.safetensors",
        "/etc/passwd",
        "missteps/one",
        ".",
        "",
        "one/../one",
        "\0",
    ],
)
def test_no_path_reaches_what_the_hub_did_not_find(ask: Ask, place: Path, name: str) -> None:
    absolute = str(place / "outside" / "secret.safetensors")
    for asked in (name, absolute):
        for path in ("things/dump", "things/checkpoint"):
            assert "text" in ask(path, of=asked, status=404 if asked else 400)
        ask("things/tensor", of=asked, address="fc.weight:param", status=404 if asked else 400)
        ask("comparisons", {"a": asked, "b": "one"}, status=404)
    ask("comparisons", {"a": "one", "b": "other", "map": "../../x"}, status=400)


def test_a_dump_lists_what_was_kept_with_statistics_and_what_was_dropped(ask: Ask) -> None:
    table = ask("things/dump", of="one", step=2)
    assert [(row["address"], row["dtype"], row["shape"], row["bytes"]) for row in table["rows"]] == [
        (f"{name}:output@2#0", "float32", [4, 8], 128) for name in NAMES
    ]
    assert table["rows"][0]["stats"]["max"] == pytest.approx(float(X.max()))
    assert [(one["step"], one["tensors"], one["bytes"]) for one in table["moments"]] == [(1, 4, 512), (2, 4, 512)]
    assert (table["asked"], table["dropped"], table["dropped_names"]) == (
        ["*:output@1:2"],
        3,
        ["fc1:output@3 (buffer full)"],
    )
    assert [row["node"] for row in ask("things/dump", of="one", step=2, q="/fc/ -file:train.py:1")["rows"]] == ["fc2"]
    assert ask("things/dump", of="one", q="nonsense:1", status=400)["code"] == "AddressError"


def test_a_folder_of_another_tool_is_browsed_like_a_run(ask: Ask) -> None:
    table = ask("things/dump", of="arrays")
    assert [(row["node"], row["stats"]["pos_inf"] + row["stats"]["neg_inf"]) for row in table["rows"]] == [
        ("fc1", 0),
        ("fc2", 32),
    ]
    array = ask("things/npy", of="arrays", address=table["rows"][0]["address"], raw=True)
    assert array.startswith(b"\x93NUMPY")
    assert array.endswith(X.tobytes())
    framed = ask("things/tensor", of="arrays", address=table["rows"][1]["address"], want="stats", raw=True)
    header = json.loads(framed[4 : 4 + int.from_bytes(framed[:4], "little")])
    assert (header["shape"], header["stats"]["count"]) == ([4, 8], 32)


def test_watchpoints_are_asked_of_a_dump_and_answered_in_a_job(ask: Ask) -> None:
    job = finished(ask, ask("checks", {"of": "arrays", "watch": ["overflow"]}))
    found = ask(f"checks/{job['id']}")
    assert [(hit["node"], hit["condition"]) for hit in found["hits"]] == [("fc2", "tensor_overflow")]
    assert finished(ask, ask("checks", {"of": "arrays", "watch": ["no such thing"]}))["state"] == "failed"


def test_two_steps_open_at_the_cause_and_its_pair_is_shown(ask: Ask) -> None:
    assert compared(ask, "one@1#0", "other@1#0")["close"]
    table = compared(ask, "one@2", "other@2")
    rows = table["rows"]
    assert (table["first"], table["cause"], rows["left"][1]) == (1, 1, "act:output")
    assert rows["verdict"] == ["identical", "different", "different", "different"]
    assert rows["part"][1] == "cause"
    assert rows["relative"][1] == pytest.approx(1 / 3, rel=1e-3)
    framed = ask(f"comparisons/{table['id']}/pair", row=1, mode="difference", want="stats", raw=True)
    header = json.loads(framed[4 : 4 + int.from_bytes(framed[:4], "little")])
    assert (header["a"], header["differences"]["out_of_tolerance"]) == ("act:output", 32)
    graph = ask(f"comparisons/{table['id']}/graph", side="b")
    assert graph["nodes"]["name"] == list(NAMES)
    ask(f"comparisons/{table['id']}/pair", row=99, status=400)
    assert ask("comparisons/0000", status=404)["code"] == "not_found"


def test_a_map_pairs_what_names_do_not_and_is_the_file_of_misstep_diff(ask: Ask) -> None:
    kept = ask("maps", {"text": '[names]\n"fc1" = "layer2"\n\n[ignore]\nleft = ["act"]\n'})
    table = compared(ask, "one@1", "renamed@1", kept["id"])
    at = table["rows"]["left"].index("fc1:output")
    assert (table["rows"]["right"][at], table["rows"]["how"][at]) == ("layer2:output", "map")
    assert ask(f"maps/{kept['id']}")["text"].startswith("[names]")
    written = ask(f"comparisons/{compared(ask, 'one@1', 'renamed@1')['id']}/map", raw=True).decode()
    assert parse_map(written).names["fc1"] == "layer1"
    assert "cannot be read" in ask("maps", {"text": "[names"}, status=400)["text"]


def test_a_checkpoint_is_shown_and_two_are_compared_with_what_only_one_has(ask: Ask) -> None:
    shown = ask("things/checkpoint", of="b.safetensors")
    states = {one["name"]: (one["section"], one["state"]) for one in shown["weights"]}
    assert states["fc.bias"] == ("weights", "nan")
    assert states["optimizer.exp_avg"] == ("optimizer", "all zero")
    table = compared(ask, "a.safetensors", "b.safetensors")
    verdicts = dict(zip(table["rows"]["left"], table["rows"]["verdict"]))
    assert (verdicts["fc.weight:param"], verdicts["fc.bias:param"]) == ("identical", "different")
    assert [one["node"] for one in table["only_right"]] == ["new.weight"]
    assert set(table["sections"]) == {"weights", "optimizer"}
    ask("things/checkpoint", of="arrays", status=400)


def test_weights_that_never_moved_over_a_series_of_checkpoints_are_told(ask: Ask, place: Path) -> None:
    folder = place / "missteps" / "epochs"
    folder.mkdir()
    for epoch in (2, 9, 10):
        weights = {"fc.weight": X * np.float32(epoch), "fc.frozen": X[0], "fc.bias": X[1] * np.float32(min(epoch, 9))}
        write_safetensors(folder / f"epoch-{epoch}.safetensors", weights)
    told = ask("things/series", of="epochs/epoch-9.safetensors")
    assert told["names"] == [f"epochs/epoch-{epoch}.safetensors" for epoch in (2, 9, 10)]
    assert [address.partition(":")[0] for address in told["unchanged"]] == ["fc.frozen"]
    alone = ask("things/series", of="b.safetensors")
    assert (alone["names"], alone["unchanged"]) == (["b.safetensors"], [])
    shutil.rmtree(folder)


def test_a_comparison_without_anything_in_common_says_so(ask: Ask) -> None:
    assert "steps held: 1, 2" in ask("comparisons", {"a": "one@9", "b": "other@1"}, status=404)["text"]
    job = finished(ask, ask("comparisons", {"a": "a.safetensors", "b": "arrays"}))
    assert job["state"] == "failed"
    assert "no tensor in common" in job["text"]


def test_a_job_is_cancelled_while_it_works_and_asked_again_starts_anew() -> None:
    jobs, under_way, cancelled = Jobs(), threading.Event(), threading.Event()

    def work(progress: Callable[[int, int], None]) -> None:
        progress(5, 10)
        under_way.set()
        cancelled.wait(20)
        progress(6, 10)
        raise AssertionError("it goes on")

    job = jobs.start("comparison", "question", work)
    assert under_way.wait(20)
    job.cancel()
    cancelled.set()
    assert job.ended.wait(20)
    assert (job.view().state, job.view().done, job.view().total) == ("cancelled", 5, 10)
    again = jobs.start("comparison", "question", lambda progress: "answer")
    assert again.ended.wait(20)
    assert jobs.answer(again.id, "comparison") == "answer"
    assert jobs.start("comparison", "question", lambda progress: "never asked") is again


def test_a_comparison_under_way_is_cancelled_over_http(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, cancelled = threading.Event(), threading.Event()

    def slowly(*_: object, progress: Callable[[int, int], None], **__: object) -> None:
        progress(3, 100)
        under_way.set()
        cancelled.wait(20)
        progress(4, 100)

    monkeypatch.setattr("misstep.hub.answers.held.thing_routes.compare_sources", slowly)
    job = ask("comparisons", {"a": "one@1", "b": "renamed@2"})
    assert under_way.wait(20)
    told = ask(f"jobs/{job['id']}")
    assert (told["state"], told["done"], told["total"]) == ("running", 3, 100)
    assert ask(f"comparisons/{job['id']}", status=400)["code"] == "not_done"
    ask(f"jobs/{job['id']}/cancel", {})
    cancelled.set()
    assert finished(ask, job)["state"] == "cancelled"


def test_the_link_of_a_thing_leads_to_its_page(place: Path) -> None:
    missteps = place / "missteps"
    pages = [
        (),
        ("arrays",),
        ("a.safetensors",),
        ("a.safetensors", "b.safetensors"),
        ("one", "arrays"),
    ]
    assert [first_page(tuple(missteps / name for name in names)) for names in pages] == [
        "",
        "dumps?of=arrays",
        "ckpt?a=a.safetensors",
        "ckpt?a=a.safetensors&b=b.safetensors",
        "compare/dumps?a=one&b=arrays",
    ]
