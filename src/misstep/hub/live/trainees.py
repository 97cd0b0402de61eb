"""The hub's end of the sockets to trainees: accepts them, makes sure of them, and keeps a conversation with each.

A trainee is trusted with nothing but its own facts: every message is a validated struct of bounded size, and one that
cannot be read ends that connection and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from misstep.errors import ControlError
from misstep.hub.security import LOOPBACK
from misstep.protocol.handshake import HELLO_BYTES, PROOF_BYTES, Callee
from misstep.protocol.wire import (
    LINK_PROTOCOL,
    Accepted,
    Answer,
    FromTrainee,
    HubBeat,
    Introduce,
    Refused,
    WireError,
    Words,
    frame,
    read_from_trainee,
    sizes,
)
from misstep.sentences import control as texts
from misstep.sentences.words import spoken

MOST_GREETINGS = 64
BACKLOG = 1024
_LONGEST_PATH = 104
"""Of the path of a Unix socket, on every system."""
HELLO_SECONDS = 5.0
LARGEST_HELLO = 4 << 20
BEAT_SECONDS = 2.0
SILENT_SECONDS = 60.0
ANSWER_SECONDS = 60.0
"""A trainee answers at the end of the step under way at the latest; a long step is no reason to give up early."""

_ids = itertools.count(1)


class Trainee:
    """One rank of one run, connected."""

    def __init__(self, introduced: Introduce, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.introduced = introduced
        self.rank = introduced.rank
        self.standing = introduced.standing
        self.dropped: dict[str, int] = {}
        self.alive = True
        self._reader, self._writer = reader, writer
        self._answers: dict[str, asyncio.Future[tuple[Answer, bytes]]] = {}

    def send(self, words: Words) -> None:
        if self.alive and not self._writer.is_closing():
            self._writer.write(frame(words))

    async def ask(self, make: Callable[[str], Words], *, seconds: float = ANSWER_SECONDS) -> tuple[Any, bytes]:
        """Send a request and wait for its answer; ControlError with the trainee's own code when it refuses."""
        id = f"h{next(_ids)}"
        future: asyncio.Future[tuple[Answer, bytes]] = asyncio.get_running_loop().create_future()
        self._answers[id] = future
        try:
            self.send(make(id))
            answer, data = await asyncio.wait_for(future, seconds)
        except TimeoutError:
            why = texts.RANK_SILENT.of(rank=self.rank, seconds=seconds)
            raise ControlError(why, code="timeout") from None
        finally:
            self._answers.pop(id, None)
        if answer.code:
            error = ControlError(spoken(answer.text, answer.text_zh), code=answer.code)
            error.params = answer.result or {}  # type: ignore[attr-defined]
            raise error
        return answer.result, data

    def take_answer(self, answer: Answer, data: bytes) -> None:
        future = self._answers.get(answer.id)
        if future is not None and not future.done():
            future.set_result((answer, data))

    def leave(self, why: str) -> None:
        """No more answers will come."""
        self.alive = False
        for future in self._answers.values():
            if not future.done():
                future.set_exception(ControlError(texts.RANK_GONE.of(rank=self.rank, why=why), code="not_running"))
        with contextlib.suppress(Exception):
            self._writer.close()

    async def read(self, *, seconds: float) -> tuple[FromTrainee, bytes]:
        async with asyncio.timeout(seconds):
            header, data = await _read_frame(self._reader)
        return read_from_trainee(header), data


Arrived = Callable[[Trainee], Awaitable[None]]


class TraineeServer:
    """Listens for trainees."""

    def __init__(
        self,
        token: str,
        *,
        arrived: Callable[[Trainee], bool],
        said: Callable[[Trainee, FromTrainee, bytes], None],
        left: Callable[[Trainee, str], None],
    ) -> None:
        self._token = token
        self._arrived, self._said, self._left = arrived, said, left
        self._servers: list[asyncio.Server] = []
        self._talks: set[asyncio.Task[None]] = set()
        self._greeting = 0
        """Connections that have not proved themselves yet."""
        self._home: Path | None = None
        self.address = ""

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, path: Path | None = None) -> str:
        """Listen; the address trainees need comes back."""
        if path is None and port == 0 and host in LOOPBACK:
            path = self._private_path()
        if path is not None:
            server = await asyncio.start_unix_server(self._accept, path=str(path), backlog=BACKLOG)
            os.chmod(path, 0o600)  # its directory let nobody else in before that
            self.address = f"unix:{path}"
        else:
            server = await asyncio.start_server(self._accept, host=host, port=port, backlog=BACKLOG)
            name, number = server.sockets[0].getsockname()[:2]
            shown = socket.gethostname() if name in ("0.0.0.0", "::") else name
            self.address = f"[{shown}]:{number}" if ":" in shown else f"{shown}:{number}"
        self._servers.append(server)
        return self.address

    def _private_path(self) -> Path | None:
        """A socket only this user can reach: a file of 0600 in a directory of 0700; None where there are none."""
        if not hasattr(asyncio, "start_unix_server"):
            return None
        self._home = Path(tempfile.mkdtemp(prefix="misstep-hub-"))
        path = self._home / "link"
        return path if len(os.fsencode(path)) < _LONGEST_PATH else None

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._talks):
            task.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._greeting >= MOST_GREETINGS:  # silent strangers must not take the descriptors of real trainees
            writer.close()
            return
        self._greeting += 1
        task = asyncio.get_running_loop().create_task(self._talk(reader, writer))
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            trainee = await self._greet(reader, writer)
        finally:
            self._greeting -= 1
        if trainee is None:
            with contextlib.suppress(Exception):
                writer.close()
            return
        beat = asyncio.get_running_loop().create_task(_beat(trainee))
        why = "the connection was lost"
        try:
            while True:
                words, data = await trainee.read(seconds=SILENT_SECONDS)
                if isinstance(words, Answer):
                    trainee.take_answer(words, data)
                else:
                    self._said(trainee, words, data)
        except (WireError, ValueError) as error:
            why = f"it sent what cannot be read ({error})"
        except TimeoutError:
            why = f"no sign of life for {SILENT_SECONDS:g} s"
        except (OSError, EOFError):
            pass
        finally:
            beat.cancel()
            trainee.leave(why)
            self._left(trainee, why)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Trainee | None:
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                if not await self._sure_of_each_other(reader, writer):
                    return None
                header, _ = await _read_frame(reader, largest=LARGEST_HELLO)
            words = read_from_trainee(header)
        except (WireError, OSError, EOFError, TimeoutError):
            return None
        if not isinstance(words, Introduce):
            return None
        if words.proto != LINK_PROTOCOL:
            writer.write(frame(Refused(f"this hub speaks protocol {LINK_PROTOCOL}, the trainee {words.proto}")))
            return None
        trainee = Trainee(words, reader, writer)
        coordinated = self._arrived(trainee)
        trainee.send(Accepted(coordinated))
        return trainee

    async def _sure_of_each_other(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        callee = Callee(self._token)
        answer = callee.answer(await reader.readexactly(HELLO_BYTES))
        if answer is None:
            return False
        writer.write(answer)
        return callee.admits(await reader.readexactly(PROOF_BYTES))


async def _beat(trainee: Trainee) -> None:
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        trainee.send(HubBeat())


async def _read_frame(reader: asyncio.StreamReader, *, largest: int | None = None) -> tuple[bytes, bytes]:
    header, rest = sizes(await reader.readexactly(8))
    if largest is not None and header + rest > largest:
        raise WireError("too large for a greeting")
    return await reader.readexactly(header), await reader.readexactly(rest)
