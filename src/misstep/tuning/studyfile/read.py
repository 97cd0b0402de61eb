"""A study file, read and checked before anything runs; every refusal names its line and what to write instead."""

from __future__ import annotations

import math
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from misstep.errors import StudyFileError, nearest
from misstep.sentences import studyfile as sentences
from misstep.tuning.studyfile import words
from misstep.tuning.studyfile.command import ALL, OVERRIDES, placeholders, split
from misstep.tuning.studyfile.document import Document, read_document
from misstep.tuning.studyfile.expression import Expression
from misstep.tuning.studyfile.parameter import read_parameters
from misstep.tuning.studyfile.study import Chosen, Limits, Study, Target

SYSTEM = ("learning_rate", "batch_size", "epoch")
"""What MindOptimizer's summaries collect by themselves."""
_METHODS = ("ucb", "pi", "ei")
"""MindOptimizer's acquisition functions; Optuna has its own."""
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|d)?\s*")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def read_study(path: Path | str) -> Study:
    """The study of a file; StudyFileError with the line of the first thing that cannot be."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise StudyFileError(
            sentences.CANNOT_READ.of(path=path, why=error.strerror or type(error).__name__), path=str(path), line=0
        ) from None
    except UnicodeDecodeError as error:
        what = sentences.NOT_UTF8.of(why=error.reason)
        raise StudyFileError(sentences.AT.of(place=path, what=what), path=str(path), line=0) from None
    return parse_study(text, str(path))


def parse_study(text: str, name: str = "study.yaml") -> Study:
    """The same from a text; `name` stands in the errors."""
    document = read_document(text, name)
    _known(document, words.STUDY, ())
    if "command" not in document.plain:
        document.wrong(sentences.COMMAND_MISSING.of())
    if "parameters" not in document.plain:
        document.wrong(sentences.PARAMETERS_MISSING.of())
    parameters = read_parameters(document)
    command, optional = _command(document, [one.name for one in parameters])
    study = Study(
        name=_name(document),
        command=command,
        optional=optional,
        parameters=parameters,
        targets=_targets(document),
        tuner=_chosen(document, "tuner", words.TUNERS, "tpe"),
        pruner=_chosen(document, "pruner", words.PRUNERS, "none"),
        prune_on=_some_of(document, "prune_on", words.PRUNE_ON),
        constraints=tuple(_constraints(document)),
        environment=_environment(document, [one.name for one in parameters]),
        start=_start(document, [one.name for one in parameters]),
        summary_base_dir=_text(document, "summary_base_dir"),
        trials=_whole(document, "trials", default=20),
        workers=_whole(document, "workers", default=1),
        timeout=_duration(document, "timeout"),
        limits=_limits(document),
        level=_one_of(document, "level", ("off", "guard", "module", "op")) or "guard",
        storage=_text(document, "storage"),
        failures=_whole(document, "failures", default=5),
        heartbeat=_duration(document, "heartbeat") or 10.0,
        grace=_duration(document, "grace") or 60.0,
        path=name,
        lines={key: document.line(key) for key in document.plain},
        notes=tuple(
            sentences.AT.of(place=f"{name}:{line}", what=sentences.WRITTEN_TWICE.of(key=key))
            for key, line in document.twice
        ),
    )
    _fitting(document, study)
    return study


def check_command(study: Study) -> None:
    """StudyFileError when the program of the command is not there; asked before the first trial."""
    program = study.command[0]
    if placeholders(program) or shutil.which(program):
        return
    what = (
        sentences.NO_PROGRAM_BUT_SCRIPT.of(program=program)
        if program.endswith(".py")
        else sentences.NO_PROGRAM.of(program=program, command=shlex.join(study.command))
    )
    raise StudyFileError(
        sentences.AT.of(place=study.where("command"), what=what), path=study.path, line=study.lines.get("command", 1)
    )


def _known(document: Document, vocabulary: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """Refuse a word that is not in the vocabulary."""
    plain: Any = document.plain
    for part in path:
        plain = plain[part]
    if not isinstance(plain, dict):
        document.wrong(sentences.NOT_A_MAPPING.of(key=path[-1], keys=list(vocabulary)), *path)
    for key in plain:
        if key not in vocabulary:
            document.wrong(sentences.UNKNOWN_KEY.of(key=key, nearest=nearest(key, vocabulary)), *path, key)


def _name(document: Document) -> str:
    name = _text(document, "study") or re.sub(r"[^\w.-]+", "-", Path(document.name).stem) or "study"
    if not re.fullmatch(r"[\w.-]+", name):
        document.wrong(sentences.BAD_NAME.of(name=name), "study")
    return name


def _command(document: Document, names: list[str]) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    given = document.plain["command"]
    try:
        command, optional = split(given) if isinstance(given, str) else (tuple(str(word) for word in given or ()), ())
    except ValueError as error:
        document.wrong(sentences.COMMAND_SPLIT.of(why=str(error)), "command")
    if not command:
        document.wrong(sentences.COMMAND_EMPTY.of(), "command")
    for word in command:
        _placed(document, word, [*names, ALL, OVERRIDES], "command")
    return command, optional


def _placed(document: Document, word: str, names: list[str], *path: str) -> None:
    for name in placeholders(word):
        if name not in names:
            document.wrong(sentences.NO_SUCH_PARAMETER.of(name=name, nearest=nearest(name, names)), *path)


def _targets(document: Document) -> tuple[Target, ...]:
    if "targets" in document.plain:
        given = document.plain["targets"]
        if not isinstance(given, list) or not given:
            document.wrong(sentences.TARGETS.of(), "targets")
        targets = tuple(_target(document, "targets", at) for at in range(len(given)))
        names = [target.name for target in targets]
        if len(set(names)) < len(names):
            document.wrong(sentences.SAME_TARGET.of(), "targets")
        return targets
    if "target" not in document.plain:
        document.wrong(sentences.TARGET_MISSING.of())
    return (_target(document, "target"),)


def _target(document: Document, *path: str | int) -> Target:
    plain: Any = document.plain
    for part in path:
        plain = plain[part]
    if isinstance(plain, str):  # also `name:loss`, as MindOptimizer's page prints it
        plain = {"name": plain.partition("name:")[2].strip() or plain.strip()}
    else:
        _known(document, words.TARGET, path)
    for key, allowed in (("goal", words.GOALS), ("reduce", words.REDUCTIONS), ("group", words.GROUPS)):
        if key in plain and plain[key] not in allowed:
            document.wrong(sentences.NOT_ONE_OF.of(key=key, value=plain[key], allowed=allowed), *path, key)
    if not isinstance(plain.get("name"), str) or not plain["name"]:
        document.wrong(sentences.TARGET_NAME.of(), *path)
    pattern = str(plain.get("pattern", ""))
    try:
        groups = re.compile(pattern).groups if pattern else 1
    except re.error as error:
        document.wrong(sentences.BAD_PATTERN.of(why=str(error)), *path, "pattern")
    if groups != 1:
        document.wrong(sentences.PATTERN_GROUP.of(), *path, "pattern")
    return Target(
        name=plain["name"],
        goal=plain.get("goal", "minimize"),
        group=plain.get("group", ""),
        reduce=plain.get("reduce", "last"),
        pattern=pattern,
        line=document.line(*path),
    )


def _chosen(document: Document, key: str, names: tuple[str, ...], default: str) -> Chosen:
    plain = document.plain.get(key)
    if plain is None:
        return Chosen(default)
    if isinstance(plain, str):
        plain = {"name": plain}
    else:
        _known(document, words.TUNER if key == "tuner" else words.PRUNER, (key,))
    name = plain.get("name", default)
    if name not in names:
        document.wrong(sentences.UNKNOWN_NAME.of(key=key, name=name, nearest=nearest(str(name), names)), key, "name")
    args = plain.get("args") or {}
    if not isinstance(args, dict):
        document.wrong(sentences.ARGS.of(), key, "args")
    method = args.get("method")
    if key == "tuner" and name == "gp" and method is not None and method not in _METHODS:
        document.wrong(sentences.NOT_ONE_OF.of(key="method", value=method, allowed=_METHODS), key, "args", "method")
    args = {word: value for word, value in args.items() if word != "method"}
    return Chosen(name, args, plain.get("seed"), document.line(key))


def _constraints(document: Document) -> list[Expression]:
    found = []
    for at, text in enumerate(document.plain.get("constraints") or ()):
        try:
            found.append(Expression(str(text)))
        except ValueError as error:
            document.wrong(str(error.args[0]), "constraints", at)
    return found


def _environment(document: Document, names: list[str]) -> dict[str, str]:
    given = document.plain.get("environment") or {}
    if not isinstance(given, dict):
        document.wrong(sentences.ENVIRONMENT.of(), "environment")
    for variable, value in given.items():
        _placed(document, str(value), names, "environment", variable)
    return {variable: str(value) for variable, value in given.items()}


def _start(document: Document, names: list[str]) -> tuple[dict[str, Any], ...]:
    given = document.plain.get("start") or ()
    for at, values in enumerate(given):
        if not isinstance(values, dict):
            document.wrong(sentences.START.of(), "start", at)
        for name in values:
            if name not in names:
                what = sentences.NO_PARAMETER.of(name=name, nearest=nearest(str(name), names))
                document.wrong(what, "start", at, name)
    return tuple(dict(values) for values in given)


def _limits(document: Document) -> Limits:
    if "trial" not in document.plain:
        return Limits()
    _known(document, words.LIMITS, ("trial",))
    plain = document.plain["trial"]
    default = Limits()
    backoff = _duration(document, "trial", "backoff")
    return Limits(
        timeout=_duration(document, "trial", "timeout"),
        steps=_whole(document, "trial", "steps", default=0) or None,
        memory_mb=_positive(document, "trial", "memory_mb") if "memory_mb" in plain else None,
        retries=_whole(document, "trial", "retries", default=0, least=0),
        backoff=default.backoff if backoff is None else backoff,
        gpus=_whole(document, "trial", "gpus", default=0, least=0),
        cpus=_whole(document, "trial", "cpus", default=0),
    )


def _fitting(document: Document, study: Study) -> None:
    """What fits in itself but not together."""
    if len(study.targets) > 1 and study.pruner.name != "none":
        document.wrong(sentences.ONE_TARGET_PRUNER.of(), "pruner")
    if len(study.targets) > 1 and study.tuner.name in ("cmaes",):
        document.wrong(sentences.ONE_TARGET_TUNER.of(name=study.tuner.name), "tuner")
    if study.tuner.name == "grid":
        for one in study.parameters:
            if one.kind == "float" and one.step is None:
                document.wrong(sentences.GRID_STEP.of(name=one.name), "parameters", one.name)
    if study.grace < 2 * study.heartbeat:
        document.wrong(sentences.GRACE.of(), "grace")


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _at(document: Document, path: tuple[str, ...]) -> Any:
    plain: Any = document.plain
    for part in path:
        plain = plain.get(part) if isinstance(plain, dict) else None
    return plain


def _text(document: Document, key: str) -> str:
    value = document.plain.get(key, "")
    if not isinstance(value, str):
        document.wrong(sentences.NOT_A_TEXT.of(key=key, value=value), key)
    return value


def _one_of(document: Document, key: str, allowed: tuple[str, ...]) -> str:
    value = document.plain.get(key, "")
    if value and value not in allowed:
        document.wrong(sentences.NOT_ONE_OF.of(key=key, value=value, allowed=allowed), key)
    return str(value)


def _some_of(document: Document, key: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    given = document.plain.get(key)
    if given is None:
        return allowed
    if not isinstance(given, list):
        document.wrong(sentences.NOT_A_LIST_OF.of(key=key, allowed=allowed), key)
    for at, word in enumerate(given):
        if word not in allowed:
            document.wrong(sentences.UNKNOWN_WORD.of(word=word, nearest=nearest(str(word), allowed)), key, at)
    return tuple(given)


def _whole(document: Document, *path: str, default: int, least: int = 1) -> int:
    value = _at(document, path)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        document.wrong(sentences.NOT_WHOLE.of(key=path[-1], least=least, value=value), *path)
    return value


def _positive(document: Document, *path: str) -> float:
    value = _at(document, path)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        document.wrong(sentences.NOT_POSITIVE.of(key=path[-1], value=value), *path)
    return float(value)


def _duration(document: Document, *path: str) -> float | None:
    value = _at(document, path)
    if value is None:
        return None
    found = _DURATION.fullmatch(str(value))
    if found is None or isinstance(value, bool):
        document.wrong(sentences.NOT_A_DURATION.of(key=path[-1], value=value), *path)
    return float(found[1]) * _SECONDS[found[2] or "s"]
