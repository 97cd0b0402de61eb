"""A port for a server that cannot choose one by itself."""

from __future__ import annotations

import random
import socket

FIRST, LAST = 15_000, 32_000
"""Below what Linux gives to outgoing connections: a port found free there stays free until the server takes it."""


def free_port(host: str = "127.0.0.1") -> int:
    for port in random.SystemRandom().sample(range(FIRST, LAST), 100):
        with socket.socket() as one:
            try:
                one.bind((host, port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port between {FIRST} and {LAST} on {host}")
