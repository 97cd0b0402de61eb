"""Everything that can go wrong and be told to a person, in one tree.

    MisstepError
    ├── AddressError          an address or pattern that cannot be read, or names nothing
    ├── ConditionError        an unknown condition, parameter or expression
    ├── SettingError          a setting with an unknown name or an impossible value
    ├── RunError              a run directory
    │   ├── RunNotFound       no such run; lists the nearest names
    │   ├── RunDamaged        something in it cannot be read
    │   └── RunTooNew         written by a later misstep
    ├── TensorUnavailable     a tensor that was not captured, was freed, is too large, or lives on another rank
    ├── AdapterError          a framework object nobody knows how to handle
    ├── ControlError          a command the debugger cannot carry out now
    │   └── StaleCommand      the state changed since the sender last looked
    ├── ReplayError           a step that cannot be run again
    ├── FormatError           a foreign file (checkpoint, dump, summary, bundle) that cannot be read
    ├── CompareError          two things that cannot be laid side by side
    ├── MigrationError        a network, source or batch that cannot be moved or checked as asked
    ├── LintError             a file that `misstep lint` cannot look at, or an unknown rule
    ├── PerformanceError      a run whose speed cannot be told, or a change that cannot be tried
    ├── Unhealthy             a run with findings, where a healthy one was asked for
    ├── TrainError            a wrong call of misstep.train
    ├── TuneError             a study that cannot go on
    │   ├── StudyFileError    a study file that cannot be read; carries its line
    │   └── StudyNotFound     no such study; lists the nearest names
    └── MissingPackage        an optional package is not installed

A message says what happened to which thing, the likely cause, and the next command. Errors know neither HTTP nor
exit codes: `hub/` and `cli/` translate, once each.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

from misstep.sentences import words


class MisstepError(Exception):
    """Anything misstep can explain. The message is a sentence of the catalogue: `said(str(error))` is in the reader's
    language."""


class AddressError(MisstepError):
    """An address or a pattern that cannot be read, or that names nothing in this run."""

    def __init__(self, message: str, *, address: str = "") -> None:
        super().__init__(message)
        self.address = address


class ConditionError(MisstepError):
    """A condition, parameter or expression that does not exist or does not fit."""


class SettingError(MisstepError):
    """A setting with an unknown name or an impossible value."""


class RunError(MisstepError):
    """A run directory that cannot be used as asked."""

    def __init__(self, message: str, *, run: str = "") -> None:
        super().__init__(message)
        self.run = run


class RunNotFound(RunError):
    """No run of that name."""


class RunDamaged(RunError):
    """Part of a run cannot be read; what came before the damage can."""


class RunTooNew(RunError):
    """The run was written by a later misstep than this one."""


class TensorUnavailable(MisstepError):
    """The tensor exists but its values are not here; `reason` says why, the message how to get them."""

    def __init__(self, message: str, *, address: str = "", reason: str = "not_captured") -> None:
        super().__init__(message)
        self.address = address
        self.reason = reason


class AdapterError(MisstepError):
    """An object of a framework that no adapter knows."""


class ControlError(MisstepError):
    """The debugger cannot carry this command out now."""

    def __init__(self, message: str, *, code: str = "unsupported") -> None:
        super().__init__(message)
        self.code = code


class StaleCommand(ControlError):
    """Somebody else moved the run since the sender last looked."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="stale_state")


class ReplayError(MisstepError):
    """A step that cannot be run again, and why."""


class FormatError(MisstepError):
    """A file of another tool that cannot be read: which, at which byte, and what was expected there."""

    def __init__(self, message: str, *, path: str = "", offset: int | None = None, expected: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset
        self.expected = expected


class CompareError(MisstepError):
    """Two things that cannot be laid side by side."""


class MigrationError(MisstepError):
    """A network, source or batch that cannot be moved or checked as asked."""


class LintError(MisstepError):
    """A file that `misstep lint` cannot look at, or a rule it does not have."""


class PerformanceError(MisstepError):
    """A run whose speed or memory cannot be told, or a change that cannot be tried."""


class Unhealthy(MisstepError, AssertionError):
    """A run with findings; raised by `misstep.assert_healthy`, so that a test of training code fails with them."""

    def __init__(self, message: str, *, findings: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class TrainError(MisstepError):
    """misstep.train was called with something that cannot work."""


class TuneError(MisstepError):
    """A study that cannot begin or go on, and what to do."""


class StudyFileError(TuneError):
    """A study file that cannot be read; the message begins with its name and line."""

    def __init__(self, message: str, *, path: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


class StudyNotFound(TuneError):
    """No study of that name."""


class MissingPackage(MisstepError, ImportError):
    """An optional package is needed and not installed."""


def need(module: str, why: str, *, extra: str = "") -> ModuleType:
    """Import an optional module, or say why it is needed and how to get it.

    >>> optuna = need("optuna", "for tuning", extra="tune")
    """
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        package = module.split(".")[0]
        what = f"misstep[{extra}]" if extra else package
        raise MissingPackage(f"{package} is needed {why}:  pip install '{what}'") from missing


def nearest(word: str, choices: Iterable[str], *, most: int = 3) -> str:
    """'; did you mean a, b or c?' for a misspelt word, or the first choices when nothing is close."""
    every = sorted({str(choice) for choice in choices})
    close = difflib.get_close_matches(word, every, n=most, cutoff=0.5)
    if not close:
        close = [choice for choice in every if word.lower() in choice.lower()][:most]
    if len(close) == 1:
        return words.DID_YOU_MEAN.of(name=close[0])
    if close:
        return words.DID_YOU_MEAN_ONE_OF.of(names=close[:-1], last=close[-1])
    if not every:
        return ""
    return words.KNOWN.of(names=every) if len(every) <= 8 else words.KNOWN_AND_MORE.of(names=every[:8])
