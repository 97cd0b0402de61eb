"""The parameters of a study file: ranges and choices, in MindOptimizer's words and in ours."""

from __future__ import annotations

import math
import re
from typing import Any

from misstep.errors import nearest
from misstep.sentences import studyfile as sentences
from misstep.tuning.studyfile import words
from misstep.tuning.studyfile.document import Document
from misstep.tuning.studyfile.expression import Expression
from misstep.tuning.studyfile.study import Parameter


def read_parameters(document: Document) -> tuple[Parameter, ...]:
    """Every parameter, in the file's order: a condition may name those before it."""
    given = document.plain["parameters"]
    if not isinstance(given, dict) or not given:
        document.wrong(sentences.PARAMETERS.of(), "parameters")
    found: list[Parameter] = []
    for name, plain in given.items():
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
            document.wrong(sentences.NO_NAME.of(name=name), "parameters", name)
        if not isinstance(plain, dict):
            document.wrong(sentences.A_PARAMETER.of(name=name), "parameters", name)
        for key in plain:
            if key not in words.PARAMETER:
                close = nearest(key, words.PARAMETER)
                document.wrong(sentences.UNKNOWN_KEY.of(key=key, nearest=close), "parameters", name, key)
        found.append(_Reading(document, name, plain).parameter([one.name for one in found]))
    return tuple(found)


class _Reading:
    """One parameter on its way from words to a range."""

    def __init__(self, document: Document, name: str, plain: dict[str, Any]) -> None:
        self._document, self._name, self._plain = document, name, plain

    def parameter(self, before: list[str]) -> Parameter:
        plain = self._plain
        for key in ("type", "source", "knob", "prior"):
            spoken = words.PARAMETER[key]["enum"]
            if key in plain and plain[key] not in spoken:
                self._wrong(sentences.NOT_ONE_OF.of(key=key, value=plain[key], allowed=spoken), key)
        if "prior" in plain and not plain.get("log"):
            self._wrong(sentences.PRIOR_OF_LOG.of(), "prior")
        when = self._when(before)
        line = self._document.line("parameters", self._name)
        kind = [key for key in ("bounds", "choice", "low", "knob") if key in plain]
        if "choice" in plain and ("bounds" in plain or "low" in plain or "high" in plain):
            self._wrong(sentences.RANGE_OR_CHOICE.of(), "choice")
        if not kind:
            self._wrong(sentences.NEEDS_RANGE.of(name=self._name))
        if "choice" in plain:
            return Parameter(self._name, kind="choice", choice=self._choice(), when=when, line=line)
        if kind == ["knob"]:
            from misstep.tuning.studyfile.knobs import knob_parameter

            return knob_parameter(self._name, str(plain["knob"]), when=when, line=line)
        return self._range(when, line)

    def _range(self, when: Expression | None, line: int) -> Parameter:
        plain = self._plain
        low, high, half_open = self._bounds()
        whole = plain.get("type", "") == "int" or (
            "type" not in plain and isinstance(low, int) and isinstance(high, int) and not plain.get("log")
            and not isinstance(plain.get("step"), float)
        )  # fmt: skip
        if whole:
            # [1.5, 4) holds 2 and 3, as MindOptimizer has it; low and high are both included.
            first = math.ceil(low)
            last = math.ceil(high) - 1 if half_open else math.floor(high)
            if last < first:
                self._wrong(sentences.NO_WHOLE_NUMBER.of(low=low, high=high), "bounds" if half_open else "low")
            low, high = first, last
        log = bool(plain.get("log", False))
        if whole and "prior" in plain:
            self._wrong(sentences.PRIOR_OF_LOG.of(), "prior")
        step = plain.get("step")
        if log and low <= 0:
            self._wrong(sentences.LOG_ABOVE_0.of(low=low), "log")
        if step is not None and (isinstance(step, bool) or not isinstance(step, (int, float)) or step <= 0):
            self._wrong(sentences.STEP_ABOVE_0.of(step=step), "step")
        if log and step is not None:
            self._wrong(sentences.LOG_OR_STEP.of(), "step")
        if whole and step is not None and step != int(step):
            self._wrong(sentences.STEP_OF_INT.of(step=step, name=self._name), "step")
        decimal = plain.get("decimal")
        if decimal is not None and (isinstance(decimal, bool) or not isinstance(decimal, int) or decimal < 0):
            self._wrong(sentences.DECIMAL.of(value=decimal), "decimal")
        return Parameter(
            self._name,
            low=low,
            high=high,
            kind="int" if whole else "float",
            log=log,
            step=step,
            decimal=decimal,
            when=when,
            prior=str(plain.get("prior", "")),
            line=line,
        )

    def _bounds(self) -> tuple[float, float, bool]:
        """Low, high, and whether high itself is left out."""
        plain = self._plain
        if "bounds" in plain:
            bounds = plain["bounds"]
            if not isinstance(bounds, list) or len(bounds) != 2:
                self._wrong(sentences.BOUNDS.of(), "bounds")
            low, high = bounds
            key = "bounds"
        else:
            if "high" not in plain:
                self._wrong(sentences.HIGH_MISSING.of(), "low")
            low, high, key = plain["low"], plain["high"], "low"
        for value in (low, high):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                self._wrong(sentences.NO_NUMBER.of(value=value), key)
        if high < low or (high == low and key == "bounds"):
            self._wrong(sentences.EMPTY_RANGE.of(low=low, high=high), key)
        return low, high, key == "bounds"

    def _choice(self) -> tuple[Any, ...]:
        choice = self._plain["choice"]
        if not isinstance(choice, list) or not choice:
            self._wrong(sentences.CHOICE.of(), "choice")
        for value in choice:
            if not isinstance(value, (str, int, float, bool)):
                self._wrong(sentences.NO_CHOICE.of(value=value), "choice")
        return tuple(choice)

    def _when(self, before: list[str]) -> Expression | None:
        text = self._plain.get("when")
        if text is None:
            return None
        try:
            when = Expression(str(text))
        except ValueError as error:
            self._wrong(str(error.args[0]), "when")
        for name in sorted(when.names):
            if name not in before:
                close = nearest(name, before)
                self._wrong(sentences.NOT_ABOVE.of(name=name, one=self._name, nearest=close), "when")
        return when

    def _wrong(self, message: str, key: str = "") -> Any:
        path = ("parameters", self._name, key) if key else ("parameters", self._name)
        self._document.wrong(message, *path)
