"""The hub as its clients meet it: guarded, numbered, resumable, and deaf to nonsense."""

from __future__ import annotations

import json
import socket
import urllib.parse
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trainee import Ask, SmallTrainee
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect

from misstep.capture.live.link import Link
from misstep.capture.live.link import connect as reach
from misstep.client import Debugger
from misstep.errors import AddressError, ControlError, StaleCommand
from misstep.hub import RunningHub
from misstep.protocol import messages as m
from misstep.protocol.handshake import ANSWER_BYTES, PROOF_BYTES, Caller
from misstep.protocol.schema import schema
from misstep.protocol.views import HitView
from misstep.protocol.wire import LINK_PROTOCOL, Bye, Hits, Introduce, Standing, frame
from waiting import connected


def live_socket(hub: RunningHub, *, token: str | None = None, **options: Any) -> Any:
    options.setdefault("subprotocols", [m.SUBPROTOCOL])
    return connect(
        hub.url.replace("http", "ws") + "/api/v1/live",
        additional_headers={"X-Misstep-Token": hub.token if token is None else token},
        proxy=None,
        **options,
    )


def say(socket: Any, message: Any) -> None:
    socket.send(m.encode(message).decode())


def hear(socket: Any, kind: type[Any]) -> Any:
    """The next message of a type; others are passed over. What came in the same frame waits for the next call."""
    waiting = socket.__dict__.setdefault("waiting_messages", deque())
    while True:
        while waiting:
            message = waiting.popleft()
            if isinstance(message, kind):
                return message
        waiting.extend(m.read_server(socket.recv(timeout=20)))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X_Misstep_Token": ""}, 401),
        ({"X_Misstep_Token": "guess"}, 401),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 200),
    ],
)
def test_only_our_own_pages_with_the_token_get_in(ask: Ask, headers: dict[str, str], status: int):
    assert ask("/api/v1/runs", **headers)[0] == status


@pytest.mark.parametrize(
    "options", [{"token": "guess"}, {"token": ""}, {"origin": "http://evil.example"}, {"subprotocols": None}]
)
def test_a_socket_is_guarded_like_every_request(hub: RunningHub, options: dict[str, Any]):
    with pytest.raises((InvalidStatus, WebSocketException)):
        live_socket(hub, **options).recv(timeout=5)


def test_the_token_becomes_a_cookie_that_scripts_cannot_read(ask: Ask):
    status, headers, _ = ask("/api/v1/session", "POST")
    assert status == 204
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ask("/api/v1/runs", X_Misstep_Token="", Cookie=cookie.partition(";")[0])[0] == 200
    assert ask("/api/v1/session", "POST", X_Misstep_Token="guess")[0] == 401


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/..%2f..%2fetc/passwd", "/static/../app.py", "/%2e%2e/app.py", "//etc/passwd", "/app.py"],
)
def test_no_path_reaches_the_file_system(ask: Ask, path: str):
    status, _, body = ask(path)
    assert b"root:" not in body
    assert b"import" not in body
    assert status in (200, 404)


@pytest.mark.parametrize("name", ["..", "../secret", "%2e%2e", "a/../../b", "\0", "x" * 5000])
def test_a_run_is_looked_up_by_name_and_never_by_path(ask: Ask, tmp_path: Path, name: str):
    (tmp_path.parent / "secret").mkdir(exist_ok=True)
    status, _, _ = ask(f"/api/v1/runs/{urllib.parse.quote(name, safe='%')}/graph")
    assert status in (400, 404)


def test_the_page_says_how_to_build_it_or_is_served_with_its_base(ask: Ask):
    status, headers, body = ask("/runs/some/debug", X_Misstep_Token="", X_Forwarded_Prefix="/user/me/proxy/8080")
    assert status == 200
    assert b"make web" in body or b'<base href="/user/me/proxy/8080/">' in body
    assert headers["x-content-type-options"] == "nosniff"


def test_an_address_others_can_reach_needs_to_be_asked_for(tmp_path: Path):
    from misstep.errors import MisstepError
    from misstep.hub import start_hub

    with pytest.raises(MisstepError, match="--expose"):
        start_hub(tmp_path, host="0.0.0.0")


def test_a_run_is_read_by_column_and_kept_by_its_etag(trainee: SmallTrainee, hub: RunningHub, ask: Ask):
    trainee.loss = float("nan")
    trainee.start(steps=3)
    with debugger_of(hub, "small") as debug:
        debug.wait_step(3)
        status, headers, body = ask("/api/v1/runs/small/graph")
        graph = json.loads(body, parse_constant=_no_bare_nan)
        assert (status, graph["nodes"]["name"]) == (200, ["encoder.0", "encoder.1", "decoder", "decoder.weight"])
        assert ask("/api/v1/runs/small/graph", If_None_Match=headers["etag"])[0] == 304
        started = json.loads(ask("/api/v1/runs/small")[2])["brief"]["started"]
        status, headers, body = ask(f"/api/v1/runs/small/steps/2?of={started:.0f}")
        table = json.loads(body, parse_constant=_no_bare_nan)
        assert (table["loss"], len(table["tensor"])) == ("NaN", 5)
        assert "immutable" in headers["cache-control"]
        assert ask("/api/v1/runs/small/steps/2", If_None_Match=headers["etag"])[0] == 304
        (curve,) = json.loads(ask("/api/v1/runs/small/scalars?tag=loss")[2], parse_constant=_no_bare_nan)
        assert curve["y"] == ["NaN", "NaN", "NaN"]
        history = json.loads(ask("/api/v1/runs/small/stats?address=decoder:output")[2], parse_constant=_no_bare_nan)
        assert history["step"] == [1, 2, 3]
        node = json.loads(ask("/api/v1/runs/small/node?name=decoder.weight")[2], parse_constant=_no_bare_nan)
        assert [tensor["role"] for tensor in node["tensors"]] == ["grad", "param"]
        for path in ("", "/hits", "/watchpoints", "/state", "/sources", "/search?q=decoder"):
            status, _, body = ask(f"/api/v1/runs/small{path}")
            json.loads(body, parse_constant=_no_bare_nan)
            assert status == 200
        assert ask("/api/v1/runs/small/search?q=color:red")[0] == 400
        assert ask("/api/v1/runs/small/node?name=nobody")[0] == 400
        assert ask("/api/v1/conditions")[0] == 200


def test_every_answer_fits_the_published_schema(trainee: SmallTrainee, hub: RunningHub, ask: Ask):
    published = json.loads(ask("/api/v1/schema")[2])
    assert published == json.loads(json.dumps(schema()))
    trainee.start(steps=1)
    with debugger_of(hub, "small") as debug:
        debug.wait_step(1)
        for event in debug.events:
            again = json.loads(m.encode(event), parse_constant=_no_bare_nan)
            wanted = published["$defs"][type(event).__name__]["required"]
            assert set(wanted) <= set(again)


def test_a_client_that_lost_its_connection_misses_no_hit(hub: RunningHub, tmp_path: Path):
    trainee = SmallTrainee(tmp_path, hub, pause_at_start=True).start(steps=0)
    with debugger_of(hub, "small") as debug:
        debug.wait("paused")
        debug.watch("abs_mean >= 0", on="decoder:output", then="note")
        debug.go()
        first = live_socket(hub)
        say(first, m.Hello(m.PROTOCOL))
        welcome = hear(first, m.Welcome)
        say(first, m.Subscribe("s", ("hits",), "small"))
        hear(first, m.Ack)
        trainee.more(2)
        seen = [hear(first, m.HitNews) for _ in range(2)]
        first.close()
        trainee.more(50)
        debug.wait_hit(52)
        second = live_socket(hub)
        say(second, m.Hello(m.PROTOCOL, resume=m.Resume(welcome.session, seen[-1].seq)))
        assert hear(second, m.Welcome).resumed
        missed = [hear(second, m.HitNews) for _ in range(50)]
        assert [hit.hit.id for hit in missed] == [hit.id for hit in debug.hits[-50:]]
        second.close()
    trainee.close()


def test_a_client_of_another_hub_is_told_to_start_anew(hub: RunningHub):
    socket = live_socket(hub)
    say(socket, m.Hello(m.PROTOCOL, resume=m.Resume("another", 7)))
    assert not hear(socket, m.Welcome).resumed
    assert hear(socket, m.Reset).snapshot_url == "api/v1/snapshot"
    socket.close()


def test_a_stale_command_is_refused_over_http_and_over_the_socket(hub: RunningHub, tmp_path: Path, ask: Ask):
    trainee = SmallTrainee(tmp_path, hub, pause_at_start=True).start()
    with debugger_of(hub, "small") as debug:
        seen = debug.wait("paused").rev
        debug.step()
        debug.wait("paused")
        with pytest.raises(StaleCommand):
            debug.command("continue", rev=seen)
        body = m.encode(m.Command("1", "continue", "small", seen))
        status, _, told = ask("/api/v1/runs/small/command", "POST", body)
        assert (status, json.loads(told)["code"]) == (409, "stale_state")
        assert debug.state.phase == "paused"
    trainee.close()


def test_a_tensor_is_answered_live_and_from_the_socket_as_bytes(hub: RunningHub, tmp_path: Path):
    trainee = SmallTrainee(tmp_path, hub, pause_at_start=True).start()
    with debugger_of(hub, "small") as debug:
        debug.wait("paused")
        debug.step()
        debug.wait("paused")
        np.testing.assert_array_equal(debug.tensor("decoder.weight:param", "1,:3"), trainee.adapter.weight[1, :3])
        with pytest.raises(ControlError, match=r"try \[:, :\]"):
            debug.tensor("decoder.weight:param", "9")
        with pytest.raises(AddressError, match="no node 'nobody' in small; known: decoder"):
            debug.tensor("nobody:output")
        socket = live_socket(hub)
        say(socket, m.Hello(m.PROTOCOL))
        say(socket, m.TensorGet("t1", "small", "decoder.weight:param", want=("tile:0,0,2,2", "hist:4", "stats")))
        while True:
            data = socket.recv(timeout=20)
            if isinstance(data, bytes):
                break
        length = int.from_bytes(data[:4], "little")
        header = json.loads(data[4 : 4 + length])
        assert (header["id"], header["data_shape"], header["origin"]) == ("t1", [2, 2], "live")
        assert sum(header["histogram"]["counts"]) == 32
        np.testing.assert_array_equal(
            np.frombuffer(data[4 + length :], np.float32).reshape(2, 2), trainee.adapter.weight[:2, :2]
        )
        socket.close()
    trainee.close()


def test_a_finished_run_can_be_set_to_a_step(trainee: SmallTrainee, hub: RunningHub):
    trainee.start(steps=4)
    with debugger_of(hub, "small") as debug:
        debug.wait_step(4)
        trainee.close()
        debug.wait("ended")
        debug.command("reset", rev=None, count=2)
        assert debug.wait("ended", "offline").step == 2
        with pytest.raises(ControlError, match="steps 0 to 4"):
            debug.command("reset", rev=None, count=99)
        with pytest.raises(ControlError, match="has ended"):
            debug.command("continue", rev=None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
TAGS = st.sampled_from(["hello", "sub", "unsub", "cmd", "watch", "tensor.get", "ping", "state", "nonsense"])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        name: JSON | st.sampled_from(["small", "continue", "add", "step", "run_to", "x:output", "0,:", "tile:0,0,9,9"])
        for name in (
            "id",
            "op",
            "run",
            "rev",
            "rank",
            "count",
            "node",
            "spec",
            "address",
            "slice",
            "want",
            "ch",
            "proto",
        )
    },
)


def test_no_message_crashes_the_hub_or_reaches_the_trainee_unread(trainee: SmallTrainee, hub: RunningHub):
    trainee.start(steps=2)
    with debugger_of(hub, "small") as debug:
        debug.wait_step(2)
        socket = live_socket(hub)
        say(socket, m.Hello(m.PROTOCOL))

        @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.builds(lambda tag, fields: {**fields, "t": tag}, TAGS, FIELDS) | JSON)
        def fuzz(message: Any) -> None:
            if isinstance(message, dict) and message.get("op") in ("terminate", "detach"):
                return
            socket.send(json.dumps(message))

        fuzz()
        socket.send(b"\x00\xff" * 50)
        socket.send("not json")
        say(socket, m.Ping("alive"))
        while hear(socket, m.Pong).id != "alive":
            pass
        socket.close()
        assert trainee.session.troubles == {}
        assert debug.get("state")["phase"] in ("running", "pausing", "paused", "stepping")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_protocol_end_their_own_connection_only(hub: RunningHub, data: bytes):
    with reach(hub.link) as stranger:
        stranger.settimeout(10)
        stranger.sendall(data)
        stranger.shutdown(socket.SHUT_WR)
        while stranger.recv(4096):
            pass


@pytest.mark.parametrize("size", [1 << 30, 0xFFFFFFFF])
def test_a_frame_that_claims_to_be_huge_is_not_waited_for(hub: RunningHub, size: int):
    with reach(hub.link) as stranger:
        stranger.settimeout(10)
        caller = Caller(hub.token)
        stranger.sendall(caller.hello)
        stranger.sendall((caller.reply(stranger.recv(ANSWER_BYTES)) or b"") + size.to_bytes(4, "little") * 2)
        assert stranger.recv(4096) == b""


def test_a_trainee_with_a_wrong_token_is_refused(hub: RunningHub):
    introduce = Introduce(LINK_PROTOCOL, "r", "", 0, 1, "here", 1, Standing("running", 1, 0))
    with reach(hub.link) as stranger:
        stranger.settimeout(10)
        caller = Caller("guess")
        stranger.sendall(caller.hello)
        answer = stranger.recv(ANSWER_BYTES)
        assert caller.reply(answer) is None, "the hub's proof is of another token"
        stranger.sendall(bytes(PROOF_BYTES) + frame(introduce))
        assert stranger.recv(4096) == b""


def debugger_of(hub: RunningHub, run: str) -> Debugger:
    """A debugger once the trainee has introduced itself."""
    connected(hub, run)
    return Debugger(run, hub.url, hub.token)


def _no_bare_nan(word: str) -> Any:
    raise AssertionError(f"JSON has no {word}")


def test_no_hit_of_a_burst_is_lost_to_a_client_that_could_not_follow(
    hub: RunningHub, ask: Ask, monkeypatch: pytest.MonkeyPatch
):
    """Four times as many hits at once as may wait for a client, on two runs: the client is told, and fetches them."""
    monkeypatch.setattr("misstep.hub.live.events.MUST_WAITING", 100)
    links = [simulated(hub, name) for name in ("left", "right")]
    with debugger_of(hub, "left") as debug, debugger_of(hub, "right") as other:
        for start in (0, 400):
            for link in links:
                views = tuple(
                    HitView(number, 1, f"a:output@{number}#0", "a", "output", 0, number, 0, "NaN")
                    for number in range(start + 1, start + 401)
                )
                link.tell_hits(lambda serial, views=views: Hits(serial, views))  # type: ignore[misc]
            for one in (debug, other):
                hits = one.wait_hit(start + 400)
                assert sorted(hit.id for hit in hits) == list(range(1, start + 401))
        gaps = [event.since for event in debug.events if isinstance(event, m.Reset)]
        assert gaps
        assert gaps == sorted(gaps)
        assert json.loads(ask(f"/api/v1/runs/left/hits?since={gaps[0]}")[2])["total"] > 0
        last = json.loads(ask("/api/v1/snapshot")[2])["seq"]
        assert json.loads(ask(f"/api/v1/runs/left/hits?since={last}")[2])["total"] == 0
    for link in links:
        link.close(Bye("finished"))


def simulated(hub: RunningHub, name: str) -> Link:
    """A trainee that is only a link, but a real one."""

    def introduce() -> Introduce:
        return Introduce(LINK_PROTOCOL, name, "", 0, 1, "here", 1, Standing("running", 1, 0))

    link = Link(
        introduce=introduce,
        received=lambda words: None,
        changed=lambda connected: None,
        address=hub.link,
        token=hub.token,
    )
    link.start()
    return link
