"""A run as one HTML file: what the page says first, in either language, and nothing of it can run as a script."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import numpy as np

from misstep.core.finding import Verdict
from misstep.core.graph import Source
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.hub import RunningHub
from misstep.store.labels import Labels, write_labels
from misstep.store.writing.writer import RunWriter


def recorded(folder: Path) -> None:
    info = RunInfo(
        name="bad", command=("python", "train.py", "--lr", "3e-4", "--name", "<script>x</script>"), started=1.0
    )
    writer = RunWriter(folder / "bad", 0, info)
    for step in range(1, 6):
        loss = float("nan") if step > 3 else 1.0 / step
        writer.step(Step(step, loss=loss), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    source = Source("train.py", 29, "h = torch.log(h)  # a < b & c")
    writer.verdict(Verdict(step=4, rank=0, phase="forward", kind="nan", node="blocks.3/log", source=source))
    writer.end("finished", 0)
    write_labels(folder / "bad", Labels(("bug",), "look <here>"))


def asked(hub: RunningHub, lang: str) -> tuple[str, str]:
    request = urllib.request.Request(
        f"{hub.url}/api/v1/runs/bad/report?lang={lang}", headers={"X-Misstep-Token": hub.token}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode(), str(answer.headers["content-disposition"])


def test_the_report_says_the_verdict_first_and_keeps_every_word_a_word(hub: RunningHub, tmp_path: Path) -> None:
    recorded(tmp_path)
    text, disposition = asked(hub, "en")
    assert 'filename="bad.html"' in disposition
    assert "NaN born in blocks.3/log: step 4, forward" in text
    assert "train.py:29   h = torch.log(h)  # a &lt; b &amp; c" in text
    assert "look &lt;here&gt;" in text
    assert "<script" not in text
    assert "5 steps" in text
    assert text.index("NaN born") < text.index("<svg") < text.index("train.py --lr")


def test_the_report_is_told_in_chinese_too(hub: RunningHub, tmp_path: Path) -> None:
    recorded(tmp_path)
    text, _ = asked(hub, "zh")
    assert 'lang="zh"' in text
    assert "NaN 产生于 blocks.3/log：轮次 4" in text
