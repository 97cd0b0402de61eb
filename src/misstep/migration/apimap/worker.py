"""One process that verifies names from a list, until it is done or MindSpore brings it down.

Before each pair it says which one it begins, so that the parent knows what a crash was about.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from misstep.migration.apimap.classes import mindspore_make, suggestions
from misstep.migration.apimap.classes import verify as classes
from misstep.migration.apimap.classes.recipes import kind_of, recipes
from misstep.migration.apimap.functions import candidates, mindspore_surface, torch_samples, torch_surface, verify
from misstep.migration.apimap.signatures import written

ENOUGH = 3
"""Counterparts that need no rewriting, after which no further ones are looked for."""


def verified(name: str, skip: frozenset[str] = frozenset(), begin: Any = lambda name, target: None) -> dict[str, Any]:
    """Everything seen about one function or method."""
    begin(name, "")
    prepared = verify.prepare(name, torch_samples.samples(name)) if "" not in skip else []
    found: list[dict[str, Any]] = []
    for target in candidates.targets(name):
        if target in skip or not mindspore_surface.exists(target):
            continue
        if sum(perfect(way) for way in found) >= ENOUGH:
            break
        begin(name, target)
        if prepared:
            found += [{"target": target, **way.written()} for way in verify.ways(name, prepared, target)]
        else:
            found.append({"target": target, "unverified": True})
    for template in candidates.TEMPLATES.get(name, ()):
        if template not in skip:
            begin(name, template)
            found += [way.written() for way in verify.templates(name, prepared, template)]
    signatures = torch_surface.overloads(name)
    return {
        "name": name,
        "kind": "function",
        "samples": len(prepared),
        "signatures": written(signatures),
        "ways": found,
    }


def verified_class(
    name: str, skip: frozenset[str] = frozenset(), begin: Any = lambda name, target: None
) -> dict[str, Any]:
    """The same of a layer, loss, optimizer or schedule."""
    samples = len(recipes(name))
    found: list[dict[str, Any]] = []
    for target in suggestions.targets(name):
        if target in skip or not mindspore_make.exists(target):
            continue
        begin(name, target)
        if samples:
            found += [{"target": target, **way.written()} for way in classes.ways(name, target)]
        else:
            found.append({"target": target, "unverified": True})
    known = classes.signature(name)
    return {
        "name": name,
        "kind": kind_of(name),
        "samples": samples,
        "signatures": written([known] if known is not None else []),
        "ways": found,
    }


def perfect(way: dict[str, Any]) -> bool:
    """Every sample passed, gradients included, and only the name changes."""
    fine = (
        way.get("passed", 0)
        and not way.get("failed")
        and not way.get("rough")
        and way.get("gradient", "same") == "same"
    )
    return bool(fine and not any(way["rewrite"].get(key) for key in ("names", "add", "turn", "fill")))


def main() -> None:
    """Read {"names": [...], "skip": {name: [targets]}} from stdin; write one JSON object a line."""
    warnings.simplefilter("ignore")
    work = json.loads(sys.stdin.read())
    out = sys.stdout

    def say(thing: dict[str, Any]) -> None:
        out.write(json.dumps(thing, ensure_ascii=False, default=str) + "\n")
        out.flush()

    for name in work["names"]:
        skip = frozenset(work["skip"].get(name, ()))
        try:
            look = verified_class if kind_of(name) != "function" else verified
            say(look(name, skip, lambda name, target: say({"begin": name, "target": target})))
        except Exception as wrong:  # ours or a framework's: the name stays unverified, and the table says so
            say(
                {
                    "name": name,
                    "kind": "function",
                    "samples": 0,
                    "signatures": [],
                    "ways": [],
                    "error": repr(wrong)[:200],
                }
            )


if __name__ == "__main__":
    main()
