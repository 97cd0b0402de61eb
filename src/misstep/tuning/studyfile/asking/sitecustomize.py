"""Put on PYTHONPATH of a script to learn its arguments: when it comes to read them, they are written down and it ends.

The script itself runs up to that line and no further. argparse is asked directly, click through its main; Hydra reads
its own options with argparse and is recognized by them.
"""

import argparse
import json
import os

_TO = os.environ.get("MISSTEP_ASK", "")


def _tell(kind: str, arguments: "list[dict[str, object]]") -> None:
    with open(_TO, "w", encoding="utf-8") as file:
        json.dump({"kind": kind, "arguments": arguments}, file, default=str)
    raise SystemExit(0)


def _of_argparse(parser: "argparse.ArgumentParser") -> "list[dict[str, object]]":
    found: list[dict[str, object]] = []
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._VersionAction, argparse._SubParsersAction)):
            continue
        flag = isinstance(action, (argparse._StoreTrueAction, argparse._StoreFalseAction))
        kind = "bool" if flag else getattr(action.type, "__name__", "") or type(action.default).__name__
        longest = max(action.option_strings, key=len, default="")
        found.append(
            {
                "name": action.dest,
                "flag": longest,
                "type": kind,
                "default": None if action.default is argparse.SUPPRESS else action.default,
                "choices": list(action.choices) if action.choices is not None else None,
                "required": action.required,
            }
        )
    return found


def _patched(self: "argparse.ArgumentParser", args: object = None, namespace: object = None) -> "object":
    found = _of_argparse(self)
    flags = {str(one["flag"]) for one in found}
    _tell("hydra" if {"--multirun", "--cfg"} <= flags else "argparse", found)
    return None


def _patch_click() -> None:
    try:
        import click
    except ImportError:
        return

    def main(self: "click.Command", *args: object, **kwargs: object) -> None:
        found: list[dict[str, object]] = []
        for one in self.params:
            if isinstance(one, click.Option):
                choices = getattr(one.type, "choices", None)
                default = one.default if isinstance(one.default, (int, float, str, bool)) else None
                found.append(
                    {
                        "name": one.name,
                        "flag": max(one.opts, key=len),
                        "type": "bool" if one.is_flag else str(one.type.name),
                        "default": default,
                        "choices": list(choices) if choices else None,
                        "required": one.required,
                    }
                )
        _tell("click", found)

    click.Command.main = main  # type: ignore[method-assign,assignment]


if _TO:
    argparse.ArgumentParser.parse_known_args = _patched  # type: ignore[method-assign,assignment]
    _patch_click()
