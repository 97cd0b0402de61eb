"""The hub stays there for who needs it: silent strangers, a thousand runs, names in any script, ranks nobody has."""

from __future__ import annotations

import json
import socket
import urllib.parse
from pathlib import Path

import numpy as np
import pytest
from trainee import Ask

from misstep.core.address import Address
from misstep.core.graph import Node, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.hub import patience
from misstep.hub.server import RunningHub
from misstep.store.listing import RunListing
from misstep.store.writing.writer import RunWriter


def recorded(folder: Path, name: str, *, node: str = "fc", end: bool = True) -> RunWriter:
    writer = RunWriter(folder / name, 0, RunInfo(name=name, command=("python",), started=1.7e9))
    writer.add_node(Node(0, node, "module", "Linear"))
    writer.add_tensor(TensorKey(0, "output"))
    writer.tensor(Address(node, step=1, rank=0), np.ones(2, np.float32), "float32", (2,))
    writer.step(Step(1, loss=0.5), np.zeros(1, HEAD), np.zeros(1, SUMMARY))
    if end:
        writer.end("finished", 0)
    return writer


def test_a_connection_that_says_nothing_is_closed_and_others_are_served(
    hub: RunningHub, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "HEAD_SECONDS", 0.2)
    host, _, port = hub.url.removeprefix("http://").rpartition(":")
    strangers = [socket.create_connection((host, int(port)), timeout=20) for _ in range(40)]
    strangers[0].sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")  # and never ends
    assert ask("/api/v1/runs")[0] == 200
    assert [closed(stranger) for stranger in strangers] == [True] * 40


def closed(stranger: socket.socket) -> bool:
    with stranger:
        try:
            return stranger.recv(1) == b""
        except ConnectionResetError:
            return True


def test_connections_are_capped(hub: RunningHub, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", 10)
    host, _, port = hub.url.removeprefix("http://").rpartition(":")
    strangers = [socket.create_connection((host, int(port)), timeout=20) for _ in range(30)]
    assert all(closed(stranger) for stranger in strangers[20:])
    for stranger in strangers:
        stranger.close()
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", 700)
    assert ask("/api/v1/runs")[0] == 200


def test_finished_runs_are_not_read_again_until_they_change(tmp_path: Path) -> None:
    for number in range(20):
        recorded(tmp_path, f"run-{number}")
    living = recorded(tmp_path, "living", end=False)
    listing = RunListing(tmp_path)
    first = {one.summary.name: one for one in listing.all()}
    again = {one.summary.name: one for one in listing.all()}
    assert [name for name in first if first[name] is not again[name]] == ["living"], "only the one that lives"
    living.end("failed", 1)
    assert {one.summary.name: one.summary.state for one in listing.all()}["living"] == "failed"


@pytest.mark.parametrize(
    "path",
    [
        "runs/none",
        "runs/none/steps/1",
        "runs/small/steps/1?rank=99",
        "runs/small/graph?rank=7",
        "runs/..%2f..%2fetc",
        "runs/%00",
    ],
)
def test_runs_and_ranks_that_are_not_there_are_404(hub: RunningHub, ask: Ask, tmp_path: Path, path: str) -> None:
    recorded(tmp_path, "small")
    status, _, body = ask(f"/api/v1/{path}")
    assert status == 404
    assert b"Traceback" not in body


def test_a_download_keeps_its_name_in_any_script(hub: RunningHub, ask: Ask, tmp_path: Path) -> None:
    recorded(tmp_path, "训练", node="编码器.全连接")
    run, address = urllib.parse.quote("训练"), urllib.parse.quote("编码器.全连接:output@1")
    status, headers, body = ask(f"/api/v1/runs/{run}/npy?address={address}")
    assert status == 200, body
    assert "filename*=UTF-8''" in headers["content-disposition"]
    assert "编码器.全连接" in urllib.parse.unquote(headers["content-disposition"].rpartition("''")[2])
    assert body.startswith(b"\x93NUMPY")
    assert json.loads(ask(f"/api/v1/runs/{run}")[2])["brief"]["run"] == "训练"
