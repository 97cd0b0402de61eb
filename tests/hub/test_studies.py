"""Studies over HTTP: in columns, in either language, and unchanged while nothing has happened."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from misstep.hub import RunningHub, start_hub
from misstep.sentences import tune as sentences
from misstep.tuning import Tuner
from misstep.tuning.storage.shared import told


def asked(hub: RunningHub, path: str, etag: str = "") -> tuple[Any, str]:
    request = urllib.request.Request(f"{hub.url}/api/v1/studies{path}")
    request.add_header("X-Misstep-Token", hub.token)
    if etag:
        request.add_header("If-None-Match", etag)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer), str(answer.headers.get("etag") or "")


def test_a_study_is_told_in_columns_and_follows_its_workers(tmp_path: Path) -> None:
    space = {"x": {"low": 0.0, "high": 1.0}, "kind": {"choice": ["a", "b"]}}
    with Tuner("s", space, goal="maximize", seed=0, base=str(tmp_path)) as tuner, start_hub(tmp_path) as hub:
        for trial in tuner.trials(5):
            trial.report(1, 0.5)
            trial.tell(trial.params["x"])
        (brief,) = asked(hub, "")[0]["studies"]
        assert (brief["study"], brief["trials"], brief["states"]) == ("s", 5, {"complete": 5})
        study, etag = asked(hub, "/s")
        assert study["goals"] == ["maximize"]
        assert study["values"][0] == study["params"][study["parameters"].index("x")]
        assert study["best"] == [max(range(5), key=lambda row: study["values"][0][row])]
        with pytest.raises(urllib.error.HTTPError, match="304"):
            asked(hub, "/s", etag)
        bad = tuner.ask()
        assert bad is not None
        tuner.end(bad.number, "PRUNED", None, ended="timeout", **told(sentences.TOO_LONG.of(seconds=3)))
        changed, later = asked(hub, "/s?lang=zh", etag)
        assert later != etag
        assert changed["why"][-1] == "超过 3 秒"
        assert asked(hub, "/s/curves?trials=0,2")[0]["curves"][1] == {"number": 2, "x": [1], "y": [0.5]}
        importance = asked(hub, "/s/importance")[0]
        assert set(importance["names"]) == {"x", "kind"}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            asked(hub, "/nosuch")
