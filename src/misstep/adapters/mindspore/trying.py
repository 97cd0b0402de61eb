"""Changes tried in one process without touching the user's files: more workers for a pipeline, another mode, level
of compiling or data sinking. `misstep advise --apply` measures with them and without; otherwise nothing of this is
installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore.dataset.engine.datasets import Dataset
from mindspore.train import Model

Tell = Callable[..., None]


def carry_out(told: dict[str, Any], tell: Tell) -> None:
    """Have the program meet these changes: {"loaders": [{"arguments"}], "knobs": {name: value}}."""
    for one in told["loaders"]:
        if "num_parallel_workers" in one["arguments"]:
            _change_pipelines(int(one["arguments"]["num_parallel_workers"]), tell)
    knobs = told["knobs"]
    if "mode" in knobs or "jit_level" in knobs:
        _change_context(knobs, tell)
    if "sink" in knobs:
        _change_sink(bool(knobs["sink"]), tell)


def _change_pipelines(workers: int, tell: Tell) -> None:
    kind: Any = Dataset
    original = kind.create_ir_tree

    def create_ir_tree(dataset: Any, *args: Any, **kwargs: Any) -> Any:
        waiting = [dataset]
        while waiting:
            one = waiting.pop()
            if getattr(one, "num_parallel_workers", None) is not None or type(one).__name__ in _TAKES_WORKERS:
                one.num_parallel_workers = workers
            waiting += list(getattr(one, "children", ()))
        tell(loader={"num_parallel_workers": workers}, at="")
        return original(dataset, *args, **kwargs)

    kind.create_ir_tree = create_ir_tree


_TAKES_WORKERS = frozenset({"MapDataset", "BatchDataset", "GeneratorDataset"})


def _change_context(knobs: dict[str, Any], tell: Tell) -> None:
    modes = {"graph": ms.GRAPH_MODE, "pynative": ms.PYNATIVE_MODE}
    forced: dict[str, Any] = {}
    if "mode" in knobs:
        forced["mode"] = modes[str(knobs["mode"])]
    if "jit_level" in knobs:
        forced["jit_config"] = {"jit_level": str(knobs["jit_level"])}
    original = ms.set_context

    def set_context(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs | forced)

    for owner in (ms, ms.context):
        if getattr(owner, "set_context", None) is original:
            owner.set_context = set_context
    ms.set_context()
    tell(knob=", ".join(knobs), value=str(knobs))


def _change_sink(value: bool, tell: Tell) -> None:
    kind: Any = Model
    original = kind.train

    def train(model: Any, *args: Any, **kwargs: Any) -> Any:
        tell(knob="sink", value=value)
        return original(model, *args, **kwargs | {"dataset_sink_mode": value})

    kind.train = train
