"""One WebSocket: commands in, events out, each at its own pace.

Reading and writing are two tasks, so that a client that does not read cannot keep its own commands from being heard,
and a command that takes long does not hold the others up.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from misstep import __version__
from misstep.errors import ControlError, MisstepError, TensorUnavailable
from misstep.hub.answers.request import frame_binary
from misstep.hub.answers.tensors import tensor
from misstep.hub.hub import Hub
from misstep.hub.live.events import Client
from misstep.protocol import messages as m

HELLO_SECONDS = 10.0
COMMANDS_AT_ONCE = 16
CAPABILITIES = ("control", "watch", "tensor", "compare", "ranks")


async def talk(hub: Hub, socket: WebSocket) -> None:
    """A conversation, from hello to the end."""
    await socket.accept(subprotocol=m.SUBPROTOCOL)
    client = Client()
    lock = asyncio.Lock()
    tasks: set[asyncio.Task[None]] = set()
    writer: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            hello = await _read(socket)
        if not isinstance(hello, m.Hello) or hello.proto != m.PROTOCOL:
            await _send(socket, lock, m.Nack("", "unsupported", f"say hello first, with proto {m.PROTOCOL}"))
            return
        await _welcome(hub, socket, lock, client, hello)
        hub.bus.clients.add(client)
        writer = asyncio.create_task(_write(hub, socket, lock, client))
        while True:
            try:
                message = await _read(socket)
            except (msgspec.MsgspecError, ValueError) as error:
                await _send(socket, lock, m.Nack("", "bad_request", str(error)[:300]))
                continue
            hub.last_busy = asyncio.get_running_loop().time()
            if len(tasks) >= COMMANDS_AT_ONCE:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            task = asyncio.create_task(_answer(hub, socket, lock, client, message))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    except (WebSocketDisconnect, TimeoutError, RuntimeError, OSError, msgspec.MsgspecError, ValueError):
        pass
    finally:
        hub.bus.clients.discard(client)
        for task in (*tasks, *([writer] if writer is not None else [])):
            task.cancel()
        with contextlib.suppress(Exception):
            await socket.close()


async def _welcome(hub: Hub, socket: WebSocket, lock: asyncio.Lock, client: Client, hello: m.Hello) -> None:
    bus = hub.bus
    missed = None
    if hello.resume is not None:
        missed = bus.since(hello.resume.session, hello.resume.seq)
    resumed = missed is not None
    welcome = m.Welcome(bus.session, bus.seq, __version__, caps=CAPABILITIES, resumed=resumed, runs=hub.live_runs())
    await _send(socket, lock, welcome)
    if missed is not None:
        client.replay(missed)
        return
    if hello.resume is not None:
        since = hello.resume.seq if hello.resume.session == bus.session else 0
        await _send(socket, lock, m.Reset("api/v1/snapshot", bus.seq, bus.session, since))
    for run in hub.live.values():
        if run.ranks:
            state = run.state()
            state.seq = bus.seq
            await _send(socket, lock, state)


async def _write(hub: Hub, socket: WebSocket, lock: asyncio.Lock, client: Client) -> None:
    try:
        while True:
            waiting = await client.next()
            since = client.take_gap()
            if since is not None:
                await _send(socket, lock, m.Reset("api/v1/snapshot", hub.bus.seq, hub.bus.session, since))
            for frame in m.in_frames(waiting):
                async with lock:
                    await socket.send_text(frame.decode())
    except (WebSocketDisconnect, RuntimeError, OSError):
        pass


async def _read(socket: WebSocket) -> m.ClientMessage:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    data = message.get("text") or message.get("bytes") or b""
    if len(data) > m.LARGEST_MESSAGE:
        raise ValueError("the message is too large")
    return m.read_client(data)


async def _answer(hub: Hub, socket: WebSocket, lock: asyncio.Lock, client: Client, message: m.ClientMessage) -> None:
    id = getattr(message, "id", "")
    try:
        if isinstance(message, m.Ping):
            await _send(socket, lock, m.Pong(message.id))
        elif isinstance(message, m.Subscribe):
            client.subscribe(message)
            if "state" in message.ch:
                # A change between the welcome and this subscription went by unheard.
                client.replay(hub.standing(message.run))
            await _send(socket, lock, m.Ack(message.id, hub.bus.seq))
        elif isinstance(message, m.Unsubscribe):
            client.wanted.pop(message.id, None)
            await _send(socket, lock, m.Ack(message.id, hub.bus.seq))
        elif isinstance(message, m.Command):
            await _send(socket, lock, await hub.command(message))
        elif isinstance(message, m.WatchEdit):
            await _send(socket, lock, await hub.edit(message))
        elif isinstance(message, m.TensorGet):
            header, data = await tensor(hub, message.run, message.address, slice=message.slice, want=message.want[:20])
            header.id = message.id
            async with lock:
                await socket.send_bytes(frame_binary(header, data))
        else:
            await _send(socket, lock, m.Nack(id, "bad_request", "hello was said already"))
    except TensorUnavailable as error:
        await _send(socket, lock, m.Nack(id, "unavailable", str(error), {"reason": error.reason}))
    except ControlError as error:
        await _send(socket, lock, m.Nack(id, error.code, str(error), getattr(error, "params", {}) or {}))
    except MisstepError as error:
        await _send(socket, lock, m.Nack(id, "bad_request", str(error)))
    except (WebSocketDisconnect, RuntimeError, OSError):
        pass  # the client left while we worked for it
    except (ValueError, msgspec.MsgspecError) as error:
        await _send(socket, lock, m.Nack(id, "bad_request", str(error)[:300]))


async def _send(socket: WebSocket, lock: asyncio.Lock, message: Any) -> None:
    async with lock:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await socket.send_text(m.encode(message).decode())
