"""What Model.train costs over a loop written by hand, and what callbacks and metrics add.

    python bench/train.py                        a table
    python bench/train.py --json                 one object: {"control": …, "rows": [{"case", "value", "unit"}]}
    python bench/train.py --framework torch      one framework only

The same network trains over the same batches, by hand and by Model, in turns, on one thread, in CPU time; a value is
the median ratio to the loop by hand. The control is that loop against itself: a difference smaller than the control's
distance from 1 means nothing. On a busy machine two runs of one case have differed by a tenth: believe a run only when
every control lies within 1 %, and run it twice.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from measure import Rows, bench, farthest, interleaved, options

from misstep.train import FixedLossScaleManager, LambdaCallback, LossMonitor, Model

Variants = dict[str, Callable[[], Any]]


def batches(steps: int, inputs: int, size: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(size, inputs)).astype(np.float32), rng.integers(0, 10, size)) for _ in range(steps)]


def torch_variants(steps: int, size: int) -> Variants:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    data = [(torch.tensor(x), torch.tensor(y)) for x, y in batches(steps, 256, size)]

    def by_hand() -> None:
        net.train()
        for x, y in data:
            optimizer.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()

    return variants_of(by_hand, data, lambda **options: Model(net, loss_fn, optimizer, **options))


def mindspore_variants(steps: int, size: int, *, graph: bool) -> Variants:
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    ms.set_seed(0)
    net = nn.SequentialCell(nn.Dense(256, 256), nn.ReLU(), nn.Dense(256, 256), nn.ReLU(), nn.Dense(256, 10))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Momentum(net.trainable_params(), 1e-4, 0.9)
    data = [(ms.Tensor(x), ms.Tensor(y.astype(np.int32))) for x, y in batches(steps, 256, size)]
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)

    def by_hand() -> None:
        step.set_train()
        for x, y in data:
            loss = step(x, y)
        loss.asnumpy()  # MindSpore runs ahead of Python: wait for the last step

    def finish(run: Any) -> None:
        run.original_args().net_outputs.asnumpy()

    wait = LambdaCallback(on_train_end=finish)
    return variants_of(by_hand, data, lambda **options: Model(net, loss_fn, optimizer, **options), also=[wait])


def variants_of(by_hand: Callable[[], None], data: Any, make: Callable[..., Model], also: Any = ()) -> Variants:
    model = make()
    variants: Variants = {
        "bare": by_hand,
        "control": by_hand,
        "Model.train": lambda: model.train(1, data, callbacks=list(also)),
        "Model.train + LossMonitor": lambda: model.train(1, data, callbacks=[*also, LossMonitor(0)]),
    }
    if not also:
        scaled = make(loss_scale_manager=FixedLossScaleManager(1024.0))
        variants["Model.train + loss scale"] = lambda: scaled.train(1, data)
    return variants


def main() -> None:
    parser = options(__doc__, rounds=61)
    parser.add_argument("--framework", choices=("torch", "mindspore", "both"), default="both")
    parser.add_argument("--steps", type=int, default=10, help="training steps a round")
    parser.add_argument("--batch", type=int, default=256, help="samples a step")
    bench(parser, everything)


def everything(given: argparse.Namespace) -> tuple[float, Rows]:
    makers: dict[str, Callable[[], Variants]] = {}
    if given.framework in ("torch", "both"):
        makers["torch"] = lambda: torch_variants(given.steps, given.batch)
    if given.framework in ("mindspore", "both"):
        makers["mindspore graph"] = lambda: mindspore_variants(given.steps, given.batch, graph=True)
        # An eager step takes twenty milliseconds, so a third of the work tells as much.
        makers["mindspore eager"] = lambda: mindspore_variants(given.steps // 3, given.batch, graph=False)

    controls: list[float] = []
    rows: Rows = []
    for case, make in makers.items():
        ratios = interleaved(make(), rounds=given.rounds // 3 if case.endswith("eager") else given.rounds)
        controls.append(ratios["control"])
        ratios.pop("bare")
        rows += [
            {"case": f"{case} {name}", "value": round(ratio, 4), "unit": "x by hand"} for name, ratio in ratios.items()
        ]
    return farthest(controls), rows


if __name__ == "__main__":
    main()
