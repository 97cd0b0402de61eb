"""What is never written down: passwords, tokens and keys, wherever they turn up in a text.

A value counts as secret when the environment has it under a name like one, when it follows such a name (`--api-key=…`,
`token: …`), when it looks like a well-known kind of key, or stands where passwords do (`-p …`, `https://me:…@`). A
user's own list of names adds to these. Of the environment itself only an allow-list is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

HIDDEN = "(hidden)"

ALLOWED = frozenset(
    {
        "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "DEVICE_ID", "RANK", "RANK_ID", "RANK_SIZE", "LOCAL_RANK",
        "LOCAL_WORLD_SIZE", "WORLD_SIZE", "GROUP_RANK", "MS_WORKER_NUM", "MS_ROLE", "OMP_NUM_THREADS",
        "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED", "PYTHONFAULTHANDLER", "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF", "CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG", "TORCH_NCCL_BLOCKING_WAIT",
        "NCCL_DEBUG", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME",
        "HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "GLOG_v", "MS_RDR_ENABLE", "MS_RDR_MODE", "MS_DEV_SAVE_GRAPHS",
        "MINDSPORE_DUMP_CONFIG", "TORCHDYNAMO_DISABLE", "LANG", "LC_ALL", "TZ",
    }
)  # fmt: skip
"""Variables worth knowing after a crash, none of which can hold a secret."""

_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:api|access|secret|private|ssh|aws|encryption|account|storage|signing)?[_\-.]?"
    r"(?:keys?|tokens?|secrets?|passw(?:or)?d|passwd|passphrase|pwd|credentials?|auth|authorization|cookies?|bearer|dsn"
    r"|session|webhook)(?:$|[_\-.\d])",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_SESSION_CLASS", "SESSION_MANAGER"})
_SHORTEST = 5
"""A shorter value ('1', 'true', 'none') would be found everywhere."""

_FOLLOWS = re.compile(
    r"(?<![\w\-.])(?P<name>[\w\-.]{0,80}?(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|passphrase|credential|authorization"
    r"|private[_-]?key|account[_-]?key|signature|cookie|webhook|auth)[\w\-.]{0,80})"
    r"(?P<between>[\"']?\]?\s*(?:=|:|\s(?=\S))\s*(?:(?:bearer|basic|token|digest)\s+)?[\"']?)"
    r"(?P<value>[^\s\"',;)\]}&]{4,})",
    re.IGNORECASE,
)
_SHAPES = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{16,}|[srw]k_(?:live|test)_\w{10,}|hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}"
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|dt|rt|cbt|ptt|soat)-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    r"|xapp-[\w-]{10,}|(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{10,}|GOCSPX-[\w-]{16,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{20,}|rubygems_[0-9a-f]{32,}"
    r"|SG\.[\w-]{10,}\.[\w-]{10,}|key-[0-9a-f]{32}|do[opr]_v1_[0-9a-f]{32,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|sq0(?:atp|csp)-[\w-]{20,}|EAA[A-Za-z0-9]{30,}|\d{8,10}:[A-Za-z0-9_-]{35}|dapi[0-9a-f]{32}|hvs\.[\w-]{20,}"
    r"|ops_eyJ[\w-]{20,}|LTAI[A-Za-z0-9]{12,}|AKID[A-Za-z0-9]{13,}|r8_[A-Za-z0-9]{30,}|nvapi-[\w-]{20,}|gsk_\w{20,}"
    r"|pplx-\w{20,}|tskey-[\w-]{10,}|PMAK-[\w-]{20,}|NRAK-[A-Z0-9]{20,}|lin_api_\w{20,}|secret_[A-Za-z0-9]{30,})"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)|(?<=://)[A-Za-z0-9_-]{20,}(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|(?<=hooks\.slack\.com/services/)[\w/]{10,}|(?<=/api/webhooks/)\d+/[\w-]{10,}"
)
_BARE = re.compile(
    r"(?P<lead>\b(?:bearer|basic)\s+)(?P<value>[\w+/=.~-]{12,})"
    r"|(?P<lead2>(?:^|\s)-(?:p|P|a|-pass|-pw)\s+)(?P<value2>(?!-|\d+(?:\s|$))\S{4,})"
    r"|(?P<lead3>(?:^|\s)(?:-u|--user)[\s=]+[^\s:]+:)(?P<value3>\S{3,})"
    r"|(?P<lead4>\bmysql(?:dump)?\b[^|;\n]*?\s-p)(?P<value4>[^\s-]\S{3,})"
    r"|(?P<lead5>\b(?:wandb|huggingface-cli|docker|comet)\s+login\s+(?:--relogin\s+)?)(?P<value5>[A-Za-z0-9]{20,})",
    re.IGNORECASE,
)
"""Secrets that follow a word without being named by it: `Bearer …`, `-p …`, `curl -u me:…`."""


def is_secret_name(name: str) -> bool:
    """True for `HF_TOKEN`, `api_key`, `db.password`; not for `tokens`, `key` or `keys`, which networks are full of.

    >>> is_secret_name("WANDB_API_KEY"), is_secret_name("PWD"), is_secret_name("key")
    (True, False, False)
    """
    if name in _NOT_SECRET or name.lower() in ("key", "keys", "token", "tokens", "session"):
        return False
    return _SECRET_NAME.search(name) is not None


class Scrubber:
    """Takes the secrets of one environment out of texts and of JSON data."""

    def __init__(self, environment: Mapping[str, str], *, names: Iterable[str] = ()) -> None:
        self._names = tuple(name.strip().lower().replace("_", "-") for name in names if name.strip())
        """Of the user's own list: variables, options and keys that are secret too."""
        values = {
            value
            for name, value in environment.items()
            if len(value) >= _SHORTEST and (is_secret_name(name) or name.upper() in _ALWAYS or self._listed(name))
        }
        self._known = re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True)))) if values else None
        listed = "|".join(re.escape(name).replace("\\-", "[-_]").replace("\\*", r"[\w-]*") for name in self._names)
        follows = rf"(?P<lead>(?<![\w-])-*(?:{listed})[\"']?(?:\s*[=:]\s*|\s+)[\"']?)(?P<value>[^\s\"',;]+)"
        self._own = re.compile(follows, re.IGNORECASE) if listed else None

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        if self._own is not None:
            text = self._own.sub(rf"\g<lead>{HIDDEN}", text)
        text = _BARE.sub(_hide_bare, _SHAPES.sub(HIDDEN, text))
        return _FOLLOWS.sub(_hide_following, text) if _MARK.search(text) else text

    def plain(self, thing: Any) -> Any:
        """The same data without secrets; what stands under a name like one is hidden whatever it holds."""
        if isinstance(thing, str):
            clean = self.text(thing)
            return thing if clean == thing else clean
        if isinstance(thing, dict):
            return {
                name: _hidden(value) if self._secret(str(name)) else self.plain(value) for name, value in thing.items()
            }
        if isinstance(thing, list | tuple):
            return self._words(thing)
        return thing

    def _words(self, row: Sequence[Any]) -> list[Any]:
        """A row, perhaps of a command line: the word behind `--token` is one too."""
        clean: list[Any] = []
        follows = False
        for word in row:
            if follows and isinstance(word, str) and not word.startswith("-") and not word.isdecimal():
                clean.append(HIDDEN)
                follows = False
                continue
            clean.append(self.plain(word))
            follows = isinstance(word, str) and self._is_option(word)
        return clean

    def _is_option(self, word: str) -> bool:
        name = word.lstrip("-")
        if name == word or "=" in word or len(name) > 60:
            return False
        return word in _SHORT_OPTIONS or name.lower() in ("token", "key", "auth") or self._secret(name)

    def _secret(self, name: str) -> bool:
        return is_secret_name(name) or self._listed(name)

    def _listed(self, name: str) -> bool:
        word = name.lower().replace("_", "-")
        return any(fnmatchcase(word, one) for one in self._names)


def _hidden(value: Any) -> Any:
    """Words hidden; numbers and shapes stay, a network's `auth: [4, 8]` is none."""
    if isinstance(value, str):
        return HIDDEN if value else value
    if isinstance(value, dict):
        return {name: _hidden(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(inner) for inner in value]
    return value


_ALWAYS = frozenset({"TOKEN", "KEY", "MISSTEP_TOKEN"})
_SHORT_OPTIONS = frozenset({"-p", "--pass", "--pw"})
_MARK = re.compile(r"key|secret|token|passw|passphrase|credential|auth|signature|cookie|webhook", re.IGNORECASE)


def _hide_bare(found: re.Match[str]) -> str:
    return f"{next(lead for name, lead in found.groupdict().items() if name.startswith('lead') and lead)}{HIDDEN}"


def _hide_following(found: re.Match[str]) -> str:
    value = found["value"]
    # `tokens=tensor(…)`, `token: float32 [8, 128]`: numbers, types and shapes are what a debugger is for.
    if re.fullmatch(r"[\d.,\[\]x]+|tensor.*|torch\..*|(?:b?float|u?int)\d+.*|None|True|False|missing|not", value):
        return found[0]
    if value.startswith("(hidden"):
        return found[0]
    blank = found["between"].isspace()
    if blank and not found["name"].startswith("-"):
        return found[0]  # `token embedding`, a sentence; only an option takes its value after a blank
    if not is_secret_name(found["name"].lstrip("-")) and not _NAMED_SO.fullmatch(found["name"].lstrip("-")):
        return found[0]  # `author: Ada`, `num_tokens=512k`
    return f"{found['name']}{found['between']}{HIDDEN}"


_NAMED_SO = re.compile(
    r"(?:.*[_.-])?(?:x[_-])?(?:api[_-]?key|access[_-]?key(?:id)?|secret\w*|token|passw(?:or)?d|passphrase|credentials?"
    r"|authorization|private[_-]?key|account[_-]?key|signature|(?:set-)?cookie|webhook|auth)|\w*(?:token|secret|password|signature)"
    r"|\w*apikey\w*|\w*_?passw(?:or)?d\w*",
    re.IGNORECASE,
)


def allowed(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may be told."""
    return {name: value for name, value in sorted(environment.items()) if name in ALLOWED}
