"""SummaryCollector: what happened during training, in files anybody can read.

summary_dir/
├── scalars.jsonl      {"step": 10, "tag": "loss", "value": 0.69, "time": 1.76e9}
├── histograms.jsonl   {"step": 10, "tag": "fc.weight", "edges": […], "counts": […]}
└── lineage.json       hyper-parameters, data set, results
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np

from misstep.errors import TrainError, nearest
from misstep.train.callbacks.base import Callback, CallbackParams, RunContext
from misstep.train.steps import framework_for
from misstep.train.values import loss_value, to_numpy

SPECIFIED = {
    "collect_metric": True,
    "collect_train_lineage": True,
    "collect_eval_lineage": True,
    "histogram_regular": "",
}
BINS = 32


class SummaryCollector(Callback):
    """Writes loss, learning rate and histograms of the parameters every `collect_freq` steps.

    `collect_specified_data={"collect_metric": False, "histogram_regular": "^conv"}` chooses what; names of parameters
    are matched by the regular expression.
    """

    def __init__(
        self,
        summary_dir: str | Path,
        collect_freq: int = 10,
        collect_specified_data: Mapping[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(collect_freq, bool) or not isinstance(collect_freq, int) or collect_freq < 1:
            raise ValueError(f"collect_freq must be a whole number of steps, got {collect_freq!r}")
        for name in collect_specified_data or {}:
            if name not in SPECIFIED:
                raise TrainError(f"unknown name {name!r} in collect_specified_data{nearest(name, SPECIFIED)}")
        self._directory = Path(summary_dir)
        self._every = collect_freq
        defaults = SPECIFIED if keep_default_action else dict.fromkeys(SPECIFIED, False)
        self._specified: dict[str, Any] = {**defaults, **(collect_specified_data or {})}
        self._custom = dict(custom_lineage_data or {})
        self._scalars: TextIO | None = None
        self._histograms: TextIO | None = None

    def __enter__(self) -> SummaryCollector:
        self._directory.mkdir(parents=True, exist_ok=True)
        # Line buffered: a reader beside the training sees whole lines at once.
        self._scalars = (self._directory / "scalars.jsonl").open("a", encoding="utf-8", buffering=1)
        self._histograms = (self._directory / "histograms.jsonl").open("a", encoding="utf-8", buffering=1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        for file in (self._scalars, self._histograms):
            if file is not None:
                file.close()
        return None

    def on_train_step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if params.cur_step_num != 1 and params.cur_step_num % self._every:
            return
        if self._specified["collect_metric"]:
            self._scalar(params, "loss", loss_value(params.net_outputs))
            if params.optimizer is not None:
                self._scalar(params, "learning_rate", framework_for(params.network).learning_rate(params.optimizer))
        if self._specified["histogram_regular"] is not False:
            self._parameters(params)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        for name, value in (params.get("eval_results") or {}).items():
            array = to_numpy(value)
            if array.size == 1:
                self._scalar(params, f"eval/{name}", float(array.reshape(-1)[0]))

    def on_train_end(self, run_context: RunContext) -> None:
        if self._specified["collect_train_lineage"]:
            self._lineage(run_context.original_args())

    def on_eval_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if self._specified["collect_eval_lineage"] and params.get("optimizer") is None:
            path = self._directory / "lineage.json"
            known = json.loads(path.read_text("utf-8")) if path.exists() else {}
            known["metrics"] = {name: np.asarray(value).tolist() for name, value in params.metrics.items()}
            path.write_text(json.dumps(known, indent=1), "utf-8")

    def _scalar(self, params: CallbackParams, tag: str, value: float | None) -> None:
        if value is not None and self._scalars is not None:
            line = {"step": params.cur_step_num, "tag": tag, "value": value, "time": time.time()}
            self._scalars.write(json.dumps(line) + "\n")

    def _parameters(self, params: CallbackParams) -> None:
        wanted = re.compile(self._specified["histogram_regular"] or "")
        for name, tensor in framework_for(params.network).snapshot(params.network).items():
            array = to_numpy(tensor)
            if array.size and array.dtype.kind == "f" and wanted.search(name) and self._histograms is not None:
                finite = array[np.isfinite(array)].astype(np.float64)
                counts, edges = np.histogram(finite, bins=BINS)
                line = {"step": params.cur_step_num, "tag": name, "edges": edges.tolist(), "counts": counts.tolist()}
                self._histograms.write(json.dumps(line) + "\n")

    def _lineage(self, params: CallbackParams) -> None:
        lineage = {
            "network": type(params.network).__name__,
            "loss_function": None
            if params.loss_fn is None
            else getattr(params.loss_fn, "__name__", type(params.loss_fn).__name__),
            "optimizer": None if params.optimizer is None else type(params.optimizer).__name__,
            "epoch": params.cur_epoch_num,
            "step": params.cur_step_num,
            "loss": loss_value(params.net_outputs),
            "train_dataset_size": params.batch_num,
            "user_defined": self._custom,
        }
        (self._directory / "lineage.json").write_text(json.dumps(lineage, indent=1), "utf-8")


def read_scalars(summary_dir: str | Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) pairs by tag; a last line still being written is left out."""
    found: dict[str, list[tuple[int, float]]] = {}
    for line in _lines(Path(summary_dir) / "scalars.jsonl"):
        found.setdefault(line["tag"], []).append((line["step"], line["value"]))
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)
