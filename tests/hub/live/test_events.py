"""Slow readers lose only what the next event supersedes, and are told."""

from __future__ import annotations

import asyncio

from misstep.hub.live.events import MUST_WAITING, RING_EVENTS, Bus, Client
from misstep.protocol import messages as m
from misstep.protocol.views import HitView


def a_hit(number: int) -> m.HitNews:
    return m.HitNews("r", HitView(number, 1, f"a:output@{number}#0", "a", "output", 0, number, 0, "NaN"))


def subscribed(*channels: str) -> tuple[Bus, Client]:
    bus, client = Bus(), Client()
    client.subscribe(m.Subscribe("s", channels, "r", max_hz=60.0))
    bus.clients.add(client)
    return bus, client


def taken(client: Client) -> list[m.ServerMessage]:
    """Everything that waits, as the socket would send it."""

    async def take() -> list[m.ServerMessage]:
        out: list[m.ServerMessage] = []
        while client._must or client._latest:
            out += [one for data in await client.next() for one in m.read_server(data)]
        return out

    return asyncio.run(take())


def test_steps_are_superseded_and_hits_never():
    bus, client = subscribed("steps", "hits")
    for number in range(1, 101):
        bus.publish(m.StepNews("r", 0, number))
        bus.publish(a_hit(number))
    out = taken(client)
    assert [event.hit.id for event in out if isinstance(event, m.HitNews)] == list(range(1, 101))
    assert [event.step for event in out if isinstance(event, m.StepNews)] == [100]
    assert [event.dropped for event in out if isinstance(event, m.Lag)] == [{"steps": 99}]


def test_points_of_a_curve_are_gathered_and_not_lost():
    bus, client = subscribed("scalars:lo*")
    for number in range(10):
        bus.publish(m.Scalars("r", 0, "loss", (number,), (float(number),)))
        bus.publish(m.Scalars("r", 0, "seconds", (number,), (0.1,)))
    (curve,) = taken(client)
    assert isinstance(curve, m.Scalars)
    assert (curve.tag, curve.x) == ("loss", tuple(range(10)))


def test_a_client_hears_only_of_the_runs_and_channels_it_asked_for():
    bus, client = subscribed("hits")
    bus.publish(m.State("r", 1, "paused", 3))
    bus.publish(m.HitNews("other", a_hit(1).hit))
    bus.publish(a_hit(2))
    assert [event.hit.id for event in taken(client) if isinstance(event, m.HitNews)] == [2]


def test_numbers_grow_and_a_gap_that_is_too_old_is_known_to_be_one():
    bus = Bus()
    for number in range(RING_EVENTS + 10):
        bus.publish(a_hit(number))
    assert bus.since(bus.session, 5) is None
    missed = bus.since(bus.session, bus.seq - 3)
    assert missed is not None
    assert [one.seq for one in missed] == [bus.seq - 2, bus.seq - 1, bus.seq]
    assert bus.since("another", 1) is None
    assert bus.since(bus.session, bus.seq + 1) is None


def test_a_client_that_reads_nothing_is_reset_and_costs_no_memory():
    bus, client = subscribed("hits")
    for number in range(MUST_WAITING + 2):
        bus.publish(a_hit(number))
    assert client.take_gap() == 0
    assert client.take_gap() is None
    assert len(client._must) < 10


def test_messages_that_waited_go_out_in_few_frames_and_in_order() -> None:
    messages = [m.encode(m.Ack(str(number), number)) for number in range(1000)]
    frames = list(m.in_frames(messages, most_bytes=4096))
    assert 1 < len(frames) < 20
    assert [one.rev for frame in frames for one in m.read_server(frame)] == list(range(1000))
    assert list(m.in_frames(messages[:1])) == messages[:1]
