"""Names made of markup and script, in everything a run can hold, in a real browser: they are shown, and nothing runs.

The browser prints the page as it stands after its scripts have run; what an attack would have changed is looked for
there.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from misstep.core.address import Address
from misstep.core.finding import Finding, Verdict
from misstep.core.graph import Node, Source, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.hub.server import start_hub
from misstep.store.writing.writer import RunWriter

CHROMIUM = Path(os.environ.get("MISSTEP_CHROMIUM", "/usr/bin/chromium"))
EVIL = "\"><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>{{7*7}}${7*7}\u202e"
NAME = "evil'onmouseover=alert(1) <b>&lt;"


def hostile_run(folder: Path) -> None:
    info = RunInfo(name=EVIL, command=("python", EVIL), started=1.7e9, versions={EVIL: EVIL}, host=EVIL)
    writer = RunWriter(folder / NAME, 0, info)
    writer.add_node(Node(0, EVIL, "module", EVIL, source=Source(EVIL, 3, EVIL)))
    writer.add_tensor(TensorKey(0, "output"))
    address = Address(EVIL, step=1, rank=0)
    writer.watchpoint("add", Watchpoint(id=1, condition="overflow", name=EVIL))
    writer.hit(Hit(1, 1, address, reason=EVIL))
    writer.verdict(Verdict(1, 0, "forward", "nan", EVIL, op=EVIL, source=Source(EVIL, 3, EVIL), note=EVIL))
    writer.finding(Finding(EVIL, "error", EVIL, evidence=(EVIL,), advice=EVIL, command=EVIL))
    writer.event("warning", text=EVIL)
    writer.tensor(address, np.full((2,), np.nan, np.float32), "float32", (2,))
    writer.step(Step(1, loss=float("nan"), optimizer=EVIL), np.zeros(1, HEAD), np.zeros(1, SUMMARY))
    writer.end("failed", 1, text=EVIL)


@pytest.mark.ui
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_names_made_of_script_are_shown_and_nothing_runs(tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: run `make browser`")
    (tmp_path / "runs").mkdir()
    hostile_run(tmp_path / "runs")
    shown = 0
    with start_hub(tmp_path / "runs") as hub:
        for page in ("", *(f"runs/{quote(NAME, safe='')}/{part}" for part in ("debug", "hist", "scalars"))):
            dom = printed(f"{hub.url}/{page}#token={hub.token}", tmp_path / "profile")
            title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
            assert title is None or "owned" not in title[1]
            assert "<img src=\"x\"" not in dom
            assert "<script>document.title" not in dom
            assert hub.token not in dom, "the token is gone from the page's address"
            shown += "onmouseover" in dom
    assert shown, "no page showed a name at all: the test looked at nothing"


def printed(address: str, profile: Path) -> str:
    """The page after some seconds of its own time."""
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
            "--virtual-time-budget=6000", "--dump-dom", address,
        ],
        capture_output=True,
        text=True,
        timeout=90,
    )  # fmt: skip
    assert done.stdout, done.stderr[-1000:]
    return done.stdout
