"""The JSON Schema of everything a browser can meet: messages and payloads."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from misstep.protocol import messages
from misstep.protocol.crash import CRASH_PAYLOADS
from misstep.protocol.payloads import PAYLOADS
from misstep.protocol.speed import SPEED_PAYLOADS
from misstep.protocol.story import STORY_PAYLOADS
from misstep.protocol.studies import STUDY_PAYLOADS
from misstep.protocol.things import HELD, CheckAsk, ComparisonAsk, MapText

_SENT = (*get_args(messages.ClientMessage), messages.Resume, messages.WatchSpec, CheckAsk, ComparisonAsk, MapText)
_FROM_CLIENTS = {kind.__name__ for kind in _SENT}


def schema() -> dict[str, Any]:
    """One JSON Schema: every message and payload under `$defs`, `ServerMessage` and `ClientMessage` as the unions."""
    spoken = (*get_args(messages.ServerMessage), *get_args(messages.ClientMessage))
    payloads = (*PAYLOADS, *CRASH_PAYLOADS, *STORY_PAYLOADS, *STUDY_PAYLOADS, *SPEED_PAYLOADS)
    kinds = (*spoken, *payloads, *HELD)
    _, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for name, definition in definitions.items():
        # The hub writes every field, so a reader may rely on all of them; a client may leave out the defaults.
        if name not in _FROM_CLIENTS and definition.get("type") == "object":
            definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = True
    unions = {
        name: {"oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in get_args(union)]}
        for name, union in (("ServerMessage", messages.ServerMessage), ("ClientMessage", messages.ClientMessage))
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "misstep",
        "description": f"Messages and payloads of misstep, protocol {messages.PROTOCOL}.",
        "$defs": dict(sorted({**definitions, **unions}.items())),
    }
