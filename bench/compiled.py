"""What watching compiled training costs, beside plain Inductor; and whether right code is ever called miscompiled.

    python bench/compiled.py                a table
    python bench/compiled.py --json         one JSON object
    python bench/compiled.py --healthy      also: ten healthy models checked operator by operator (minutes)

`guard` and `module` are ratios to the same compiled step without misstep, interleaved in one process on one thread, in
CPU time; the control is that step against itself. `op, with its shadow` runs the step a second time uncompiled, and is
given in uncompiled steps. Every variant must have computed the same loss.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measure import Rows, bench, interleaved, options


def main() -> None:
    parser = options(__doc__, rounds=12)
    parser.add_argument("--healthy", action="store_true", help="check ten healthy models operator by operator")
    bench(parser, measure)


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    control, rows = costs(given.rounds)
    if given.healthy:
        rows.append({"case": "healthy models called miscompiled, of 10", "value": healthy(), "unit": "models"})
    return control, rows


def costs(rounds: int) -> tuple[float, Rows]:
    import torch
    from models import GPT

    from misstep.adapters.pytorch.adapter import PyTorchAdapter
    from misstep.capture.session import Session
    from misstep.core.levels import Level
    from misstep.settings import Settings

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = GPT()
    compiled = torch.compile(model)
    words = torch.randint(0, 256, (2, 65))
    losses: set[float] = set()

    def step_of(net: Callable[..., Any]) -> Callable[[], None]:
        def step() -> None:
            # lr 0 and one seed: every variant sees the same, so that the same loss proves the same computation
            torch.manual_seed(1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
            loss = torch.nn.functional.cross_entropy(net(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if net is compiled:
                losses.add(float(loss))

        return step

    step = step_of(compiled)

    def watched(level: Level) -> Callable[[], None]:
        session = Session(Settings({"level": level, "dir": tempfile.mkdtemp()}))
        adapter = PyTorchAdapter()

        def run() -> None:
            session.use(adapter)
            adapter.attach(session)
            adapter.set_level(level)
            session.replays.arm(adapter, level)
            step()
            adapter.detach()

        return run

    variants = {"bare": step, "control": step, "eager": step_of(model)}
    variants |= {level: watched(level) for level in ("guard", "module", "op")}
    ratios = interleaved(variants, rounds=rounds)
    assert len(losses) == 1, f"the compiled loss changed while it was watched: {losses}"
    rows: Rows = [
        {"case": f"gpt {level}", "value": round(ratios[level], 4), "unit": "x compiled"}
        for level in ("guard", "module")
    ]
    shadow = (ratios["op"] - 1) / ratios["eager"]
    rows.append({"case": "gpt op, shadow of one step", "value": round(shadow, 3), "unit": "uncompiled steps"})
    return ratios["control"], rows


def healthy() -> int:
    """Of ten models that Inductor compiles right: how many are called miscompiled."""
    import torch
    from torch import nn
    from torch._inductor.compile_fx import compile_fx

    from misstep.adapters.pytorch.compiled.operators_apart import check

    torch.manual_seed(0)
    image, words, series = torch.randn(2, 3, 12, 12), torch.randint(0, 50, (2, 9)), torch.randn(2, 9, 16)
    models: list[tuple[nn.Module, torch.Tensor]] = [
        (nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), series),
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2)), image),
        (nn.Sequential(nn.Embedding(50, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 50)), words),
        (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), series),
        (nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True), series),
        (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.MaxPool2d(2)), image),
        (nn.Sequential(nn.ConvTranspose2d(3, 4, 2, 2), nn.Sigmoid(), nn.Conv2d(4, 4, 1), nn.Softplus()), image),
        (nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 8), nn.LogSoftmax(-1)), series),
        (nn.Sequential(nn.Flatten(1), nn.Linear(144, 24), nn.PReLU(), nn.Linear(24, 2), nn.Softmax(-1)), series),
        (nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), image),
    ]
    return sum(_called_wrong(check, compile_fx, model, inputs) for model, inputs in models)


def _called_wrong(check: Any, backend: Any, model: Any, inputs: Any) -> bool:
    import copy

    import torch
    from torch import fx

    from misstep.adapters.pytorch.compiled.operators_apart import copied

    found: list[bool] = []

    def keep(graph: fx.GraphModule, example: list[Any]) -> Callable[..., Any]:
        kept = fx.GraphModule(graph, copy.deepcopy(graph.graph))

        def run(*given: Any) -> Any:
            worst = check(kept, copied(given), backend).worst
            found.append(worst is not None and worst.wrong)
            return graph(*given)

        return torch._dynamo.disable(run)

    torch._dynamo.reset()
    torch.compile(model, backend=keep)(inputs)
    return any(found)


if __name__ == "__main__":
    main()
