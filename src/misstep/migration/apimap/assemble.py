"""The journal of a generation as the table the package carries: verdicts, and what every verdict stands on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

TABLE = Path(__file__).with_name("api_map.jsonl")
MOST_WAYS = 3

Verdict = Literal["equivalent", "differs", "none", "uncertain"]


def write_table(entries: Iterable[dict[str, Any]], path: Path = TABLE, *, keep: bool = False) -> str:
    """Write the table whole or not at all; returns a line about it. `keep` leaves names in that are not given."""
    held = {one["name"]: one for one in _held(path)} if keep else {}
    held.update({one["name"]: condensed(one) for one in entries})
    lines = [held[name] for name in sorted(held)]
    counts = Counter(entry["verdict"] for entry in lines)
    verified = sum(bool(entry.get("ways")) for entry in lines)
    head = {
        "format": 1,
        "torch": version("torch"),
        "mindspore": version("mindspore"),
        "verified": verified,
        "verdicts": dict(counts),
    }
    text = "".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in (head, *lines))
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return f"{path.name}: {len(lines)} names, {verified} executed on both sides, {dict(counts)}"


def names_held(path: Path = TABLE) -> set[str]:
    """What the table knows for the installed versions; nothing when it was made for others."""
    return {one["name"] for one in _held(path)}


def _held(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    head, *lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    installed = all(head[one] == version(one) for one in ("torch", "mindspore"))
    return lines if installed else []


def condensed(entry: dict[str, Any]) -> dict[str, Any]:
    """One name of PyTorch: its verdict, its signatures, and its best counterparts with their evidence."""
    seen = sorted((way for way in entry["ways"] if way.get("passed")), key=_rank)
    found: dict[str, Any] = {"name": entry["name"], "verdict": verdict(entry, seen)}
    if entry.get("kind", "function") != "function":
        found["kind"] = entry["kind"]
    if entry["signatures"]:
        found["signatures"] = entry["signatures"]
    if seen:
        found["ways"] = [_way(one) for one in _distinct(seen)[:MOST_WAYS]]
    else:
        possible = [one["target"] for one in entry["ways"] if one.get("unverified")]
        if possible:
            found["possible"] = possible[:2]
    return found


def verdict(entry: dict[str, Any], seen: list[dict[str, Any]]) -> Verdict:
    """equivalent: every sample passed and only the name changes. differs: a rewrite, or parts that do not. none: every
    candidate was executed and failed, or there is none. uncertain: nothing could be executed."""
    if seen:
        best = seen[0]
        plain = not any(best["rewrite"].get(key) for key in ("names", "add", "template", "turn", "fill"))
        whole = not best.get("failed") and not best.get("rough") and best.get("gradient", "same") == "same"
        return "equivalent" if plain and whole and not best.get("drawn") else "differs"
    if any(one.get("unverified") for one in entry["ways"]) or entry.get("error") or entry.get("crashed"):
        return "uncertain"
    return "none"


def _rank(way: dict[str, Any]) -> tuple[Any, ...]:
    """The best first: gradients that flow, fewer failures, more passed, exact, less to rewrite."""
    rewrite = way["rewrite"]
    return (
        way.get("gradient", "same") != "same",
        bool(way.get("failed")),
        -way["passed"],
        bool(way.get("rough")),
        sum(len(rewrite.get(key, ())) for key in ("names", "add", "turn", "fill")) + bool(rewrite.get("template")),
    )


def _distinct(ways: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One way a target and arrangement, and at least one for every set of parameters that some way can take."""
    kept: list[dict[str, Any]] = []
    covered: set[str] = set()
    for way in ways:
        passing = {form for form, (good, bad) in way.get("forms", {}).items() if good and not bad}
        if not kept or passing - covered:
            kept.append(way)
            covered |= passing
    return kept + [way for way in ways if way not in kept]


def _way(way: dict[str, Any]) -> dict[str, Any]:
    found = {key: way[key] for key in ("passed", "failed", "rough", "edges", "gradient", "drawn") if way.get(key)}
    found.update(way["rewrite"])
    if way.get("off"):
        found["off"] = float(f"{way['off']:.2g}")
    found["forms"] = way.get("forms", {})
    bad = {
        name: [token for token, (good, wrong) in tokens.items() if wrong and not good]
        for name, tokens in way.get("values", {}).items()
    }
    bad = {name: tokens for name, tokens in bad.items() if tokens}
    if bad:
        found["bad"] = bad
    if way.get("failed") and way.get("notes"):
        found["note"] = way["notes"][-1][:100]
    return found
