"""`misstep.report(accuracy=0.93)`: a scalar of this run, recorded beside its loss; nothing when nobody watches."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from misstep.store.layout import RUN_VARIABLE

REPORTED = "reported.jsonl"
"""In a run directory: scalars that a program reported before, or without, training anything."""


def report(step: int | None = None, **values: float) -> None:
    """Record scalars of the training that is under way, for `misstep show`, the page and `misstep tune`.

    >>> misstep.report(accuracy=0.93, step=120)

    In a process that misstep does not watch it does nothing. It never raises: a number that cannot be recorded is not
    worth a training.
    """
    from misstep.capture.process import live_session

    session = live_session()
    writer = session.writer if session is not None else None
    at = step if step is not None else session.step if session is not None else 0
    try:
        plain = {tag: float(value) for tag, value in values.items()}
        if writer is not None:
            for tag, value in plain.items():
                writer.event("scalar", tag=tag, step=int(at), value=value)
            writer.flush()
        elif os.environ.get(RUN_VARIABLE):
            _append(Path(os.environ[RUN_VARIABLE]), plain, int(at))
    except Exception:
        if os.environ.get("MISSTEP_STRICT") == "1":
            raise


def _append(run: Path, values: dict[str, float], step: int) -> None:
    lines = [
        json.dumps({"tag": tag, "step": step, "value": value, "time": time.time()}) for tag, value in values.items()
    ]
    with open(run / REPORTED, "a", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
