"""What `--json` says of a run: everything, exact, for a program to read."""

from __future__ import annotations

from typing import Any

import numpy as np

from misstep.cli.render.run import where_nonfinite
from misstep.core.address import Address
from misstep.core.stats import Array, TensorStats
from misstep.diagnosis.rules.silent import all_findings
from misstep.store.reading.reader import Run

_MOST_VALUES = 4096
_MOST_PLACES = 1000


def run_facts(run: Run) -> dict[str, Any]:
    """Everything the journals of a run tell, for a program to read."""
    return {
        "run": run.name,
        "path": str(run.path.absolute()),
        "state": run.state,
        "verdict": run.verdict,
        "verdicts": run.verdicts,
        "hits": run.hits(),
        "findings": all_findings(run),
        "watchpoints": run.watchpoints,
        "steps": [{"rank": rank, **_fields(step)} for rank in run.ranks for step in run.steps(rank)],
        "skipped": [{"rank": event.rank, **event.facts} for event in run.events("skipped")],
        "last_step": run.last_step,
        "ranks": run.ranks,
        "command": run.info.command,
        "started": run.info.started,
        "host": run.info.host,
        "versions": run.info.versions,
        "git": run.info.git,
        "settings": run.info.settings,
        "world_size": run.info.world_size,
        "warnings": [event.facts for event in run.events("warning")],
        "lost": run.lost,
        "damage": run.damage,
    }


def history_facts(run: Run, address: str, rows: list[tuple[Address, TensorStats]]) -> dict[str, Any]:
    """The statistics of every tensor that fits, by tensor, step by step."""
    tensors: dict[str, list[dict[str, Any]]] = {}
    for where, stats in rows:
        name = str(Address(where.node, where.role, where.slot, None, where.rank, where.call))
        tensors.setdefault(name, []).append({"step": where.step, **_fields(stats)})
    return {
        "run": run.name,
        "pattern": address,
        "tensors": [{"address": name, "history": history} for name, history in tensors.items()],
    }


def value_facts(address: Address, values: Array) -> dict[str, Any]:
    """A kept tensor for a program to read: the values while they are few, and where they are not finite."""
    bad = where_nonfinite(values, most=_MOST_PLACES)
    told = {"address": str(address), "dtype": values.dtype.name, "shape": values.shape, "nonfinite": bad}
    if values.size <= _MOST_VALUES:
        told["values"] = values.astype(np.float64).tolist() if values.dtype.kind != "c" else values.tolist()
    return told


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
