"""What must not travel with a flight record: passwords, tokens and keys, wherever they turn up in a text.

A value counts as secret when the environment has it under a name like one, when it follows such a name (`--api-key=…`,
`token: …`), or when it looks like a well-known kind of key. Of the environment itself only an allow-list is told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    r"(?P<name>[\w\-.]*(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|passphrase|credential|authorization)"
    r"[\w\-.]*)(?P<between>[\"']?\s*(?:=|:|\s(?=\S))\s*(?:bearer\s+)?[\"']?)(?P<value>[^\s\"',;)\]}]{5,})",
    re.IGNORECASE,
)
_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)


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

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {
            value
            for name, value in environment.items()
            if len(value) >= _SHORTEST and (is_secret_name(name) or name.upper() in _ALWAYS)
        }
        self._known = re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True)))) if values else None

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        text = _SHAPES.sub(HIDDEN, text)
        return _FOLLOWS.sub(_hide_following, text) if _MARK.search(text) else text

    def plain(self, thing: Any) -> Any:
        """The same data without secrets; a member named like one is hidden whatever it holds."""
        if isinstance(thing, str):
            return self.text(thing)
        if isinstance(thing, dict):
            return {
                name: HIDDEN if is_secret_name(str(name)) and isinstance(value, str) and value else self.plain(value)
                for name, value in thing.items()
            }
        if isinstance(thing, list | tuple):
            return [self.plain(value) for value in thing]
        return thing


_ALWAYS = frozenset({"TOKEN", "KEY", "MISSTEP_TOKEN"})
_MARK = re.compile(r"key|secret|token|passw|passphrase|credential|authorization", re.IGNORECASE)


def _hide_following(found: re.Match[str]) -> str:
    value = found["value"]
    # `tokens=tensor(…)`, `token: float32 [8, 128]`: numbers, types and shapes are what a debugger is for.
    if re.fullmatch(r"[\d.,\[\]x]+|tensor.*|torch\..*|(?:b?float|u?int)\d+.*|None|True|False|missing|not", value):
        return found[0]
    if found["between"].isspace() and not found["name"].startswith("-"):
        return found[0]  # `token embedding`, a sentence; only an option takes its value after a blank
    return f"{found['name']}{found['between']}{HIDDEN}"


def allowed(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may be told."""
    return {name: value for name, value in sorted(environment.items()) if name in ALLOWED}
