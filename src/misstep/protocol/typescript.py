"""The messages as TypeScript: web/src/types.gen.ts is written from the JSON Schema and never by hand.

    python -m misstep.protocol.typescript            prints it
    python -m misstep.protocol.typescript --write    writes web/src/types.gen.ts of this source tree

A test compares the file with the schema, so that a changed message breaks the page's type check and not the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from misstep.protocol.messages import PROTOCOL, SUBPROTOCOL
from misstep.protocol.schema import schema

FILE = Path(__file__).resolve().parents[3] / "web" / "src" / "types.gen.ts"

_HEAD = """// Written by `python -m misstep.protocol.typescript --write` from core/{messages,payloads}.py; do not edit.

/** A float as JSON carries it: the three that JSON has no word for are words. */
export type Num = number | "NaN" | "Infinity" | "-Infinity";
"""
_WORDS = frozenset({"NaN", "Infinity", "-Infinity"})
_PLAIN = {"string": "string", "integer": "number", "boolean": "boolean", "null": "null"}


def typescript() -> str:
    """Every message and payload as a TypeScript type."""
    parts = [_HEAD, f"export const PROTOCOL = {PROTOCOL};", f"export const SUBPROTOCOL = {json.dumps(SUBPROTOCOL)};"]
    parts += [_definition(name, definition) for name, definition in schema()["$defs"].items()]
    return "\n".join(parts) + "\n"


def _definition(name: str, definition: dict[str, Any]) -> str:
    comment = _comment(definition.get("description", ""), "")
    if definition.get("type") != "object":
        return f"\n{comment}export type {name} = {_type(definition)};"
    required = set(definition.get("required", ()))
    lines = [
        f"  {field}{'' if field in required else '?'}: {_type(kind)};"
        for field, kind in definition["properties"].items()
    ]
    return f"\n{comment}export interface {name} {{\n" + "\n".join(lines) + "\n}"


def _comment(text: str, indent: str) -> str:
    first = text.strip().split("\n\n")[0].replace("\n", " ").strip()
    return f"{indent}/** {first} */\n" if first else ""


def _type(kind: dict[str, Any]) -> str:
    if "$ref" in kind:
        return str(kind["$ref"]).rsplit("/", 1)[1]
    if "const" in kind:
        return json.dumps(kind["const"])
    if "enum" in kind:
        return " | ".join(json.dumps(value) for value in kind["enum"])
    for union in ("oneOf", "anyOf"):
        if union in kind:
            return _union(kind[union])
    if kind.get("type") == "array":
        return _array(kind)
    if kind.get("type") == "object":
        values = kind.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    if kind.get("type") == "number":
        return "number"
    return _PLAIN.get(kind.get("type", ""), "unknown")


def _array(kind: dict[str, Any]) -> str:
    inner = _type(kind["items"]) if isinstance(kind.get("items"), dict) else "unknown"
    return f"({inner})[]" if " " in inner and not inner.startswith("Record<") else f"{inner}[]"


def _union(kinds: list[dict[str, Any]]) -> str:
    """A union; a float or one of the three words is `Num`, however msgspec has sorted them."""
    words = {value for kind in kinds for value in kind.get("enum", ())}
    out: list[str] = []
    if words == _WORDS and {"type": "number"} in kinds:
        out.append("Num")
        kinds = [kind for kind in kinds if kind != {"type": "number"} and set(kind.get("enum", ())) != _WORDS]
        nulls = [kind for kind in kinds if kind.get("type") == "null"]
        kinds = [kind for kind in kinds if kind not in nulls] + nulls
    out += [_type(kind) for kind in kinds]
    return " | ".join(dict.fromkeys(out))


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        FILE.write_text(typescript(), encoding="utf-8")
        print(f"wrote {FILE.name}")
        return 0
    print(typescript(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
