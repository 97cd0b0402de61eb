"""MindSpore's dump configuration, read for either framework: the file of MINDSPORE_DUMP_CONFIG becomes dump specs.

    {"common_dump_settings": {"dump_mode": 1, "iteration": "0|5-8", "kernels": ["name-regex(.*conv.*)", "MatMul"], …},
     "e2e_dump_settings": {"enable": true}}

Iterations count from 0 there and steps from 1 here: iteration 0 is step 1. Names are ours: modules as the program calls
them, operators below them behind a slash. What a key asks for and cannot be had is an error with the key's name, or,
where the dump is as good without it, a sentence that is told once; never silently something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from misstep.core.address import ROLES, Role
from misstep.core.dumps import DumpSpec, Kernels, Saved, Steps
from misstep.errors import SettingError, nearest

STATISTICS = (
    "max", "min", "avg", "count", "negative zero count", "positive zero count", "nan count", "negative inf count",
    "positive inf count", "zero count", "md5", "l2norm",
)  # fmt: skip
_REQUIRED = ("dump_mode", "path", "net_name", "iteration", "input_output", "kernels", "support_device")
_COMMON = frozenset(_REQUIRED) | {
    "op_debug_mode", "saved_data", "statistic_category", "overflow_number", "initial_iteration", "file_format",
    "sample_mode", "sample_num",
}  # fmt: skip
_E2E = frozenset(
    {"enable", "trans_flag", "stat_calc_mode", "device_stat_precision_mode", "sample_mode", "sample_num",
     "save_kernel_args"}
)  # fmt: skip
_ASYNC = frozenset({"enable", "op_debug_mode"})
_INPUTS: frozenset[Role] = frozenset({"input", "grad_output"})
"""What goes into a node, forward or backward."""


@dataclass(frozen=True, slots=True)
class DumpConfig:
    """A configuration file in our words."""

    spec: DumpSpec
    path: str
    """Where MindSpore would write; `misstep export RUN --format mindspore` writes its layout there."""
    net_name: str
    statistics: tuple[str, ...]
    """The columns of statistic.csv behind the first ten, in this order."""
    asynchronous: bool
    first_iteration: int = 0
    """What step 1 is called there."""
    unmet: tuple[str, ...] = ()
    """A sentence for every key that changes nothing here, with the reason."""
    plain: dict[str, Any] = field(default_factory=dict, hash=False)
    """The file as it was read, for the journal: an export asks it again."""


def read_dump_config(path: str | Path) -> DumpConfig:
    """The file named by MINDSPORE_DUMP_CONFIG or by --dump-config.

    >>> read_dump_config("dump.json").spec.steps
    ((1, 1), (6, 9))
    """
    where = Path(path)
    try:
        plain = json.loads(where.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingError(f"no such dump configuration: {where} (dump_config, or MINDSPORE_DUMP_CONFIG)") from None
    except (OSError, ValueError) as error:
        raise SettingError(f"cannot read the dump configuration {where}: {error}") from None
    return dump_config(plain, str(where))


def dump_config(plain: Any, where: str = "of the run") -> DumpConfig:
    """A configuration that was read already."""
    return _Reader(where).read(plain)


class _Reader:
    def __init__(self, where: str) -> None:
        self._where = where

    def read(self, plain: Any) -> DumpConfig:
        common = self._section(plain, "common_dump_settings", _COMMON)
        if common is None:
            raise self._wrong("common_dump_settings", "is missing; a dump configuration begins with it")
        lacking = [key for key in _REQUIRED if key not in common]
        if lacking:
            raise self._wrong(lacking[0], f"is missing from common_dump_settings; it needs {', '.join(_REQUIRED)}")
        e2e = self._section(plain, "e2e_dump_settings", _E2E)
        asynchronous = self._section(plain, "async_dump_settings", _ASYNC)
        first = self._number(common, "initial_iteration", 0)
        steps = iterations(self._text(common, "iteration"), first=first)
        mode = self._choice(common, "dump_mode", (0, 1, 2))
        if mode == 2:
            raise self._wrong("dump_mode", "2 marks targets with set_dump, which is Ascend's; name them in kernels (1)")
        debug = self._choice({**common, **(asynchronous or {})}, "op_debug_mode", (0, 1, 2, 3, 4), default=0)
        sampled = {**common, **(e2e or {})}
        kernels = self._kernels(common["kernels"])
        saved, statistics = self._saved(common), self._statistics(common)
        spec = DumpSpec(
            steps=steps,
            level="op",
            kernels=kernels if mode == 1 else None,
            roles=self._roles(self._choice(common, "input_output", (0, 1, 2))),
            ranks=self._ranks(common["support_device"]),
            saved=saved,
            overflow=debug != 0,
            inputs_only=debug == 4,
            most_overflows=self._number(common, "overflow_number", 0),
            sample=self._number(sampled, "sample_num", 100)
            if self._choice(sampled, "sample_mode", (0, 1), default=0)
            else 0,
        )
        return DumpConfig(
            spec=spec,
            path=self._text(common, "path"),
            net_name=self._text(common, "net_name"),
            statistics=statistics,
            # MindSpore: end-to-end is the synchronous one, and takes precedence when both are on.
            asynchronous=bool((asynchronous or {}).get("enable")) and not bool((e2e or {}).get("enable")),
            first_iteration=first,
            unmet=tuple(self._unmet(common, e2e or {}, asynchronous or {}, saved, statistics)),
            plain=plain,
        )

    def _unmet(
        self,
        common: dict[str, Any],
        e2e: dict[str, Any],
        asynchronous: dict[str, Any],
        saved: Saved,
        statistics: tuple[str, ...],
    ) -> Iterator[str]:
        def asks(section: dict[str, Any], key: str, choices: tuple[Any, ...], *, default: Any) -> Any:
            value = section.get(key, default)
            if value not in choices or isinstance(value, bool) != isinstance(default, bool):
                raise self._wrong(key, f"is {value!r}; it is one of {', '.join(map(str, choices))}")
            return value

        if asks(common, "file_format", ("npy", "bin"), default="npy") == "bin":
            yield "file_format bin: tensors go into the pack of the run; an export writes .npy"
        if not asks(e2e, "trans_flag", (True, False), default=True):
            yield "trans_flag false: tensors are kept as the framework lays them out; there is no other format to keep"
        if asks(e2e, "stat_calc_mode", ("host", "device"), default="host") == "device":
            yield "stat_calc_mode device: statistics are computed where the tensor lies, in the same pass as the others"
        if asks(e2e, "device_stat_precision_mode", ("high", "low"), default="high") == "low":
            yield "device_stat_precision_mode low: statistics are added up in float64; nothing would be gained"
        if asks(e2e, "save_kernel_args", (True, False), default=False):
            yield "save_kernel_args: arguments of an operator that are no tensors are not kept"
        if saved == "statistic" and "md5" in statistics:
            yield "statistic_category md5: it needs the values, which saved_data statistic lets go; the column is empty"
        if not e2e.get("enable") and not asynchronous.get("enable"):
            yield "neither e2e_dump_settings nor async_dump_settings is enabled: dumped synchronously all the same"

    def _section(self, plain: Any, name: str, known: frozenset[str]) -> dict[str, Any] | None:
        section = plain.get(name) if isinstance(plain, dict) else None
        if section is None:
            return None
        if not isinstance(section, dict):
            raise self._wrong(name, "is no object")
        for key in section:
            if key not in known:
                raise self._wrong(key, f"is not known in {name}{nearest(key, known)}")
        return section

    def _choice(
        self, section: dict[str, Any], key: str, choices: tuple[int, ...], *, default: int | None = None
    ) -> int:
        value = section.get(key, default)
        if isinstance(value, bool) or value not in choices:
            raise self._wrong(key, f"is {value!r}; it is one of {', '.join(map(str, choices))}")
        return int(value)

    def _number(self, section: dict[str, Any], key: str, default: int) -> int:
        value = section.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._wrong(key, f"is {value!r}, not a number of 0 or more")
        return value

    def _text(self, section: dict[str, Any], key: str) -> str:
        value = section[key]
        if not isinstance(value, str):
            raise self._wrong(key, f"is {value!r}, not a text")
        return value

    def _kernels(self, given: Any) -> Kernels:
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise self._wrong("kernels", f"is {given!r}, not a list of names")
        names: set[str] = set()
        types: list[str] = []
        regexes: list[re.Pattern[str]] = []
        for one in given:
            inside = re.fullmatch(r"name-regex\((.*)\)", one.strip(), re.DOTALL)
            if inside is not None:
                try:
                    regexes.append(re.compile(inside[1]))
                except re.error as error:
                    raise self._wrong("kernels", f"has {one!r}, which is no regular expression: {error}") from None
            elif "/" in one or "." in one:
                names.add(one)
            else:
                # A bare word is a type in MindSpore; here it may also be the name of a module without dots.
                names.add(one)
                types.append(one.lower())
        return Kernels(frozenset(names), tuple(types), tuple(regexes))

    def _roles(self, which: int) -> frozenset[Role] | None:
        return None if which == 0 else _INPUTS if which == 1 else frozenset(ROLES) - _INPUTS

    def _ranks(self, given: Any) -> frozenset[int] | None:
        if not isinstance(given, list) or not all(isinstance(one, int) for one in given):
            raise self._wrong("support_device", f"is {given!r}, not a list of numbers")
        # Required by the schema even on a CPU, where MindSpore ignores it; eight zeros to seven means everybody.
        return None if not given or set(given) >= set(range(8)) else frozenset(given)

    def _saved(self, common: dict[str, Any]) -> Saved:
        known: dict[Any, Literal["tensor", "statistic", "full"]] = {
            "tensor": "tensor",
            "statistic": "statistic",
            "full": "full",
        }
        value = common.get("saved_data", "tensor")
        if value not in known:
            raise self._wrong("saved_data", f"is {value!r}; it is one of tensor, statistic, full")
        return known[value]

    def _statistics(self, common: dict[str, Any]) -> tuple[str, ...]:
        given = common.get("statistic_category", ["max", "min", "l2norm"])
        if not isinstance(given, list):
            raise self._wrong("statistic_category", f"is {given!r}, not a list")
        for one in given:
            if one not in STATISTICS:
                raise self._wrong("statistic_category", f"has {one!r}; known are {', '.join(STATISTICS)}")
        return tuple(given)

    def _wrong(self, key: str, why: str) -> SettingError:
        return SettingError(f"dump configuration {self._where}: {key} {why}")


def iterations(text: str, *, first: int = 0) -> Steps | None:
    """`0|5-8|100-120`, counted from `first` with both ends, as steps counted from 1; None for `all`.

    >>> iterations("0|5-8")
    ((1, 1), (6, 9))
    """
    if text.strip() == "all":
        return None
    ranges = []
    for part in text.split("|"):
        found = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if found is None:
            raise SettingError(f"cannot read the iterations {text!r}; they look like 0|5-8|100-120, or all")
        begin = int(found[1])
        end = begin if found[2] is None else int(found[2])
        if end < begin:
            raise SettingError(f"the iterations {part.strip()!r} of {text!r} end before they begin")
        if end >= first:
            ranges.append((max(begin - first, 0) + 1, end - first + 1))
    return tuple(ranges)
