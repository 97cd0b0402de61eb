"""How a client finds the hub of a run, and asks it over HTTP.

A hub leaves a card in the directories it serves (address and token). Where there is none, one is started in the
background; it ends by itself when nobody needs it any more.
"""

from __future__ import annotations

import hmac
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from misstep.core.slices import Array
from misstep.errors import AddressError, ControlError, MisstepError, RunNotFound, StaleCommand, TensorUnavailable
from misstep.protocol.handshake import nonce, proof
from misstep.protocol.tensor_payloads import ComparisonHeader, TensorHeader
from misstep.store.hubcard import read_card

WAIT_SECONDS = 60.0
IDLE_SECONDS = 600.0
Header = TypeVar("Header", TensorHeader, ComparisonHeader)


def hub_of(run: Path, *, wait_seconds: float = 20.0) -> tuple[str, str]:
    """(url, token) of the hub that serves a run; one is started in the background when there is none."""
    found = card_of(run) or card_of(run.parent)
    if found is None:
        _start_background_hub(run.parent)
        deadline = time.monotonic() + wait_seconds
        while found is None:
            if time.monotonic() > deadline:
                raise ControlError(
                    f"no hub came up for {run.name} within {wait_seconds:g} s; start one by hand:"
                    f"  misstep ui --dir {run.parent}",
                    code="timeout",
                )
            time.sleep(0.05)
            found = card_of(run) or card_of(run.parent)
    return found


@dataclass(frozen=True, slots=True)
class HubAccess:
    """One run of one hub."""

    run: str
    url: str
    token: str

    def get(self, what: str, **query: Any) -> Any:
        return json.loads(self.http(what, query))

    def binary(self, what: str, kind: type[Header], **query: Any) -> tuple[Header, memoryview]:
        body = self.http(what, query)
        length = int.from_bytes(body[:4], "little")
        return msgspec.json.decode(body[4 : 4 + length], type=kind), memoryview(body)[4 + length :]

    def http(self, what: str, query: dict[str, Any]) -> bytes:
        given = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        name = urllib.parse.quote(self.run, safe="")
        request = urllib.request.Request(
            f"{self.url}/api/v1/runs/{name}/{what}?{given}", headers={"X-Misstep-Token": self.token}
        )
        try:
            with _DIRECT.open(request, timeout=WAIT_SECONDS) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            raise _error(error.read(), error.code) from None
        except OSError as error:
            raise ControlError(f"the hub at {self.url} does not answer: {error}", code="timeout") from None


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""The hub is on this machine or was named by address; a proxy for the internet has no business in between."""


def _error(body: bytes, status: int) -> MisstepError:
    try:
        told = json.loads(body)
    except ValueError:
        return ControlError(f"the hub answered {status}", code="failed")
    text, code = str(told.get("text", status)), str(told.get("code", ""))
    if code == "unavailable":
        return TensorUnavailable(text, address=str(told.get("address", "")), reason=str(told.get("reason", "")))
    if code == "RunNotFound":
        return RunNotFound(text)
    if code == "AddressError":
        return AddressError(text)
    return StaleCommand(text) if code == "stale_state" else ControlError(text, code=code or "failed")


def array_of(header: Any, data: memoryview) -> Array:
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, header.data_dtype, None) or header.data_dtype)
    return np.frombuffer(data, dtype).reshape(header.data_shape)


def card_of(directory: Path) -> tuple[str, str] | None:
    """The hub whose card lies in a directory, if it answers."""
    card = read_card(directory)
    if card is None or not card.http or card.gone:
        return None
    asked = nonce()
    try:
        # Another program may listen there by now: it proves that it knows the token before we give it away.
        with _DIRECT.open(f"{card.http}/api/v1/hello?nonce={asked.hex()}", timeout=2.0) as answer:
            given = answer.read(200).decode("ascii", "replace")
    except (OSError, ValueError, http.client.HTTPException):
        return None
    known = hmac.compare_digest(given, proof(card.token, "http", asked, b"").hex())
    return (card.http, card.token) if known else None


def _start_background_hub(directory: Path) -> None:
    command = [sys.executable, "-m", "misstep", "ui", "--dir", str(directory), "--idle", str(IDLE_SECONDS), "--quiet"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MISSTEP_")}
    subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
