"""A study file proposed from a script's own arguments: `misstep tune --like "python train.py"`.

The script is started once and ends where it reads its arguments. What looks like a hyper-parameter gets a range around
its default; what does not (paths, seeds, epochs) is left alone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from misstep.errors import TuneError, need
from misstep.sentences import tune as sentences

ASKING = Path(__file__).resolve().parent / "asking"
SECONDS = 120
_LEFT_ALONE = re.compile(
    r"seed|epoch|step|iter|worker|rank|port|dir|path|file|name|log|print|save|load|resume|eval|device|gpu|num_classes"
    r"|data|every|freq|interval|world|node|host|user|project|tag|verbose|debug|version|config",
    re.IGNORECASE,
)
_RATE = re.compile(r"(^|_|\.)(lr|learning_?rate|eta)($|_|\.)", re.IGNORECASE)
_DECAY = re.compile(r"decay|(^|_)wd($|_)|(^|_)l2($|_)|eps", re.IGNORECASE)
_SHARE = re.compile(r"momentum|dropout|beta|alpha|gamma|smoothing|ratio|prob", re.IGNORECASE)
_BATCH = re.compile(r"batch", re.IGNORECASE)
_WIDTH = re.compile(r"width|hidden|dim|units|channels|embed|size", re.IGNORECASE)
_FEW = re.compile(r"layer|depth|head|block", re.IGNORECASE)


def study_like(command: str) -> str:
    """The text of a study file for this command; TuneError when it never reads arguments."""
    words = shlex.split(command)
    if not words:
        raise TuneError(sentences.LIKE_EMPTY.of())
    told = _asked(words)
    kind, arguments = str(told["kind"]), list(told["arguments"])
    if kind == "hydra":
        arguments = list(_of_hydra(words))
    given = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in words if word.startswith("--")}
    chosen = [(one, _range(one)) for one in arguments if str(one["name"]) not in given]
    found = [(one, text) for one, text in chosen if text]
    left = [str(one["name"]) for one, text in chosen if not text]
    if not found:
        raise TuneError(sentences.LIKE_NOTHING.of(command=command, names=", ".join(left) or "–"))
    return _written(command, kind, found, left)


def _written(command: str, kind: str, found: list[tuple[dict[str, Any], str]], left: list[str]) -> str:
    if kind == "hydra":
        line = f"{command} {{overrides}}"
    else:
        parts = [f"{one['flag'] or ''} {{{one['name']}}}".strip() for one, _ in found if one["type"] != "bool"]
        line = " ".join([command, *parts])
        flags = [one for one, _ in found if one["type"] == "bool"]
        if flags:
            line = f"{command} {{parameters}}"
    lines = [
        "# Proposed by misstep from the script's own arguments; every range is a guess around the default.",
        f"command: {line}",
        "parameters:",
        *(f"  {one['name']}: {text}" for one, text in found),
        "target: {name: loss, goal: minimize, reduce: mean}",
        "tuner: gp",
        "pruner: median",
        "trials: 30",
    ]
    if left:
        lines.append(f"# Left as they are: {', '.join(left)}")
    return "\n".join(lines) + "\n"


def _asked(words: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="misstep-") as folder:
        answer = Path(folder) / "arguments.json"
        path = os.pathsep.join(part for part in (str(ASKING), os.environ.get("PYTHONPATH", "")) if part)
        environment = {**os.environ, "PYTHONPATH": path, "MISSTEP_ASK": str(answer)}
        try:
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        except OSError as error:
            raise TuneError(sentences.CANNOT_START.of(program=words[0], why=error.strerror)) from None
        except subprocess.TimeoutExpired:
            raise TuneError(sentences.LIKE_SLOW.of(command=shlex.join(words), seconds=SECONDS)) from None
        if not answer.exists():
            said = (done.stderr or done.stdout).strip().splitlines()
            last = f": {said[-1]}" if said and done.returncode else ""
            raise TuneError(sentences.LIKE_NEVER.of(command=shlex.join(words), why=last))
        plain = json.loads(answer.read_text(encoding="utf-8"))
        assert isinstance(plain, dict)
        return plain


def _of_hydra(words: list[str]) -> Iterator[dict[str, Any]]:
    """Hydra prints its whole configuration with --cfg job."""
    yaml = need("yaml", "for study files", extra="tune")
    done = subprocess.run([*words, "--cfg", "job"], capture_output=True, text=True, timeout=SECONDS, check=False)
    yield from _flat(yaml.safe_load(done.stdout) or {}, "")


def _flat(plain: Any, prefix: str) -> Iterator[dict[str, Any]]:
    for name, value in plain.items() if isinstance(plain, dict) else ():
        whole = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{whole}.")
        else:
            yield {"name": whole, "flag": "", "type": type(value).__name__, "default": value, "choices": None}


def _range(one: dict[str, Any]) -> str:
    """The range of an argument as the study file has it; empty for what is no hyper-parameter."""
    name, default, kind = str(one["name"]), one.get("default"), str(one["type"])
    if one.get("choices"):
        return "" if _LEFT_ALONE.search(name) else f"{{choice: [{', '.join(map(_word, one['choices']))}]}}"
    if _BATCH.search(name) and isinstance(default, int):
        return _powers(default)
    if kind == "bool" or isinstance(default, bool):
        return "" if _LEFT_ALONE.search(name) else "{choice: [false, true]}"
    if not isinstance(default, (int, float)):
        return ""
    if _RATE.search(name) and default > 0:
        return f"{{low: {_short(default / 30)}, high: {_short(default * 30)}, log: true}}"
    if _LEFT_ALONE.search(name) and not (_RATE.search(name) or _DECAY.search(name)):
        return ""
    if _DECAY.search(name):
        middle = default if default > 0 else 1e-4
        return f"{{low: {_short(middle / 100)}, high: {_short(middle * 100)}, log: true}}"
    if _SHARE.search(name) and 0 <= default < 1:
        return "{low: 0.0, high: 0.99}"
    if isinstance(default, int) and default > 0:
        if _FEW.search(name):
            return f"{{low: 1, high: {2 * default + 2}}}"
        return (
            _powers(default)
            if _WIDTH.search(name)
            else f"{{low: {max(1, default // 4)}, high: {default * 4}, log: true}}"
        )
    if isinstance(default, float) and default > 0:
        return f"{{low: {_short(default / 10)}, high: {_short(default * 10)}, log: true}}"
    return ""


def _powers(middle: int) -> str:
    values = sorted({max(1, int(middle * factor)) for factor in (0.25, 0.5, 1, 2, 4)})
    return f"{{choice: [{', '.join(map(str, values))}]}}"


def _short(value: float) -> str:
    text = f"{value:.2g}"
    return text if "." in text or "e" in text else f"{text}.0"


def _word(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (bool, int, float)) else json.dumps(str(value), ensure_ascii=False)
