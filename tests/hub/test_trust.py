"""Who is trusted with what: a stranger on the hub's port, another user of the machine, a stolen cookie."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from pathlib import Path

import pytest
from trainee import Ask

from misstep.capture.live.link import Link
from misstep.cli import browser
from misstep.hub import security
from misstep.hub.security import Guard, Sessions
from misstep.hub.server import RunningHub, start_hub
from misstep.hubaccess import card_of
from misstep.protocol.handshake import ANSWER_BYTES, HELLO_BYTES, Callee, Caller
from misstep.protocol.wire import HUB_FILE, LINK_PROTOCOL, Introduce, Standing
from misstep.store.hubcard import read_card
from misstep.store.runs import new_run_directory

TOKEN = "the token nobody else knows"


def link_to(address: str) -> Link:
    introduce = Introduce(LINK_PROTOCOL, "secret run", "/secret/place", 0, 1, "here", 1, Standing("running", 1, 0))
    return Link(
        introduce=lambda: introduce,
        received=lambda words: None,
        changed=lambda on: None,
        address=address,
        token=TOKEN,
    )


def test_a_stranger_on_the_port_of_the_hub_learns_nothing_and_gives_no_orders() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        heard: list[bytes] = []
        done = threading.Event()

        def listen() -> None:
            connection, _ = stranger.accept()
            connection.settimeout(10)
            heard.append(connection.recv(4096))
            connection.sendall(bytes(ANSWER_BYTES))  # a guess
            heard.append(connection.recv(4096))
            done.set()

        threading.Thread(target=listen, daemon=True).start()
        link = link_to(f"127.0.0.1:{stranger.getsockname()[1]}")
        link.start()
        assert done.wait(10)
        link.close()
    hello, after = heard
    assert len(hello) == HELLO_BYTES
    assert after == b"", "the trainee hangs up on who cannot prove himself"
    assert TOKEN.encode() not in hello
    assert b"secret" not in hello
    assert not link.connected


def test_what_was_overheard_cannot_be_said_again_nor_sent_back() -> None:
    first, hub = Caller(TOKEN), Callee(TOKEN)
    answer = hub.answer(first.hello)
    assert answer is not None
    proof = first.reply(answer)
    assert proof is not None
    assert hub.admits(proof)
    again = Callee(TOKEN)
    again.answer(first.hello)
    assert not again.admits(proof), "another nonce, another proof"
    assert Caller(TOKEN).reply(answer) is None
    assert not hub.admits(answer[-32:]), "the hub's own proof is not a trainee's"
    assert Callee("").answer(first.hello) is None


def test_the_link_is_a_socket_only_this_user_can_reach(hub: RunningHub) -> None:
    path = Path(hub.link.removeprefix("unix:"))
    assert hub.link.startswith("unix:")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_socket_is_gone_with_the_hub(tmp_path: Path) -> None:
    with start_hub(tmp_path) as hub:
        path = Path(hub.link.removeprefix("unix:"))
        assert path.exists()
    assert not path.parent.exists()


def test_silent_connections_are_capped_and_do_not_keep_a_trainee_out(hub: RunningHub) -> None:
    strangers = []
    for _ in range(200):
        stranger = socket.socket(socket.AF_UNIX)
        stranger.settimeout(10)
        stranger.connect(hub.link.removeprefix("unix:"))
        strangers.append(stranger)
    # The ones beyond the cap are closed at once; the rest when they have been silent for some seconds.
    assert sum(stranger.recv(1) == b"" for stranger in strangers[100:]) == 100
    for stranger in strangers:
        stranger.close()
    introduce = Introduce(LINK_PROTOCOL, "late", "", 0, 1, "here", 1, Standing("running", 1, 0))
    met = threading.Event()
    link = Link(
        introduce=lambda: introduce, received=lambda words: None, changed=lambda on: met.set(), address=hub.link,
        token=hub.token,
    )  # fmt: skip
    link.start()
    assert met.wait(10)
    link.close()


def test_a_cookie_is_not_the_token_and_dies_with_its_session(hub: RunningHub, ask: Ask) -> None:
    _, headers, _ = ask("/api/v1/session", method="POST")
    cookie = headers["set-cookie"].partition(";")[0]
    assert hub.token not in headers["set-cookie"]
    assert str(hub.url.rpartition(":")[2]) in cookie.partition("=")[0]
    assert ask("/api/v1/runs", X_Misstep_Token="", Cookie=cookie)[0] == 200
    stolen = cookie.partition("=")[2]
    assert ask("/api/v1/session", method="POST", X_Misstep_Token=stolen)[0] == 401, "a cookie buys no session"
    assert ask("/api/v1/runs", X_Misstep_Token="", Cookie=f"x={hub.token}")[0] == 401
    assert ask("/api/v1/runs", X_Misstep_Token="", Cookie=f"misstep_session_1={hub.token}")[0] == 401


def test_cookies_are_replaced_every_hour_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(security.time, "monotonic", lambda: now[0])
    sessions = Sessions()
    first = sessions.new()
    assert sessions.renewed(first) is None
    now[0] += security.ROTATED_SECONDS + 1
    second = sessions.renewed(first)
    assert second is not None
    assert sessions.admits(first), "answers under way still bring the old one"
    assert sessions.renewed(first) is None
    now[0] += security.OVERLAP_SECONDS + 1
    assert not sessions.admits(first)
    assert sessions.admits(second)
    now[0] += security.SESSION_SECONDS + 1
    assert not sessions.admits(second)
    guard = Guard(TOKEN)
    assert not guard.admits({"cookie": f"misstep_session_80={second}"})


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/api/v1/runs", {"X_Misstep_Token": "no"}),
        ("/", {"Host": "evil.example"}),
        ("/api/v1/runs", {"Origin": "http://evil.example"}),
    ],
)
def test_refusals_carry_the_security_headers_too(ask: Ask, path: str, given: dict[str, str]) -> None:
    status, headers, _ = ask(path, **given)
    assert status in (401, 403, 421)
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors" in headers["content-security-policy"]


def test_the_page_may_reach_this_host_and_nobody_else(hub: RunningHub, ask: Ask) -> None:
    policy = ask("/")[1]["content-security-policy"]
    reach = next(part for part in policy.split(";") if "connect-src" in part).split()[1:]
    host = hub.url.removeprefix("http://")
    assert reach == ["'self'", f"ws://{host}", f"wss://{host}"]


def test_a_program_that_took_the_port_of_a_dead_hub_is_not_given_its_token(tmp_path: Path) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def listen() -> None:
            connection, _ = stranger.accept()
            heard.append(connection.recv(4096))
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            connection.close()

        threading.Thread(target=listen, daemon=True).start()
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        write_card(tmp_path, {"link": "", "http": url, "token": TOKEN, "pid": os.getpid()})
        assert card_of(tmp_path) is None
    assert heard
    assert TOKEN.encode() not in heard[0]


@pytest.mark.parametrize(
    "card",
    [b"", b"[]", b"null", b"\xff", b'{"pid":"x","token":1}', b'{"link":[],"http":{},"token":"t"}', b"[" * 100_000,
     b'{"link":"","http":"gopher://x","token":"t","pid":99999999999999}'],
)  # fmt: skip
def test_a_card_that_is_nonsense_is_skipped(card: bytes, tmp_path: Path) -> None:
    (tmp_path / HUB_FILE).write_bytes(card)
    (tmp_path / HUB_FILE).chmod(0o600)
    assert card_of(tmp_path) is None
    with start_hub(tmp_path):
        left = read_card(tmp_path)
        assert left is not None
        assert left.pid == os.getpid()
    link = link_to("")
    link.look_for_hub(time.monotonic())
    assert not link.started


def test_a_card_that_others_could_have_written_is_none(tmp_path: Path) -> None:
    write_card(tmp_path, {"link": "127.0.0.1:1", "http": "", "token": TOKEN, "pid": 0})
    assert read_card(tmp_path) is not None
    (tmp_path / HUB_FILE).chmod(0o666)
    assert read_card(tmp_path) is None
    (tmp_path / "real").write_text(json.dumps({"link": "x", "token": TOKEN}))
    (tmp_path / HUB_FILE).unlink()
    (tmp_path / HUB_FILE).symlink_to(tmp_path / "real")
    assert read_card(tmp_path) is None


def write_card(folder: Path, card: dict[str, object]) -> None:
    (folder / HUB_FILE).write_text(json.dumps(card))
    (folder / HUB_FILE).chmod(0o600)


def test_a_browser_is_given_a_file_and_not_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(browser.webbrowser, "open", opened.append)
    browser.open_page(f"http://127.0.0.1:1/#token={TOKEN.replace(' ', '-')}</script>")
    (address,) = opened
    assert address.startswith("file:///")
    assert "token" not in address
    file = Path(address.removeprefix("file://"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert "the-token-nobody-else-knows" in file.read_text()
    assert file.read_text().count("</script>") == 1


@pytest.mark.parametrize(("share", "folder", "file"), [("", 0o700, 0o600), ("1", 0o755, 0o644)])
def test_a_run_is_its_owners_alone_unless_it_is_shared(
    share: str, folder: int, file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from misstep.core.run import RunInfo
    from misstep.store.writing.writer import RunWriter

    monkeypatch.delenv("MISSTEP_RUN", raising=False)
    monkeypatch.setenv("MISSTEP_SHARE", share)
    before = os.umask(0o022)
    try:
        run = new_run_directory(tmp_path / "missteps", "mine")
        writer = RunWriter(run, 0, RunInfo(name="mine", command=(), started=1.0))
        writer.end("finished", 0)
    finally:
        os.umask(before)
    assert stat.S_IMODE(run.stat().st_mode) == folder
    assert {stat.S_IMODE(one.stat().st_mode) for one in run.rglob("*") if one.is_file()} == {file}
