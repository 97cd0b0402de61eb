"""Two ranks under msrun, on the CPU: each has its directory, and the one that went wrong is named."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from livestory import Live
from story import RunCommand, Write, updates

from ports import free_port

pytestmark = [pytest.mark.story, pytest.mark.slow, pytest.mark.mindspore]

TRAIN = """
    import mindspore as ms, numpy as np
    from mindspore import nn, ops
    from mindspore.communication import get_rank, init

    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    init()
    rank = get_rank()

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1, self.act, self.fc2 = nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1)

        def construct(self, x):
            return self.fc2(self.act(self.fc1(x)))

    net, loss_fn, reduce = Net(), nn.MSELoss(), ops.AllReduce()
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    rng = np.random.default_rng(rank)

    def forward(x, y):
        return loss_fn(net(x), y)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    for step in range(1, 5):
        x = rng.standard_normal((8, 4)).astype(np.float32)
        if rank == 1 and step == 3:
            x[0] = np.nan
        loss, gradients = differentiate(ms.Tensor(x), ms.Tensor(np.zeros((8, 1), np.float32)))
        optimizer(tuple(reduce(gradient) / 2 for gradient in gradients))
"""


def test_every_rank_of_msrun_has_its_own_directory_and_the_bad_one_is_named(
    write: Write, misstep_command: RunCommand
) -> None:
    write("train.py", TRAIN)
    bin = Path(sys.executable).parent
    launcher = ("--worker_num=2", "--local_worker_num=2", "--join=True", f"--master_port={free_port()}")
    result = misstep_command(
        "run",
        str(bin / "msrun"),
        *launcher,
        "train.py",
        environment={"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "GLOG_v": "3"},
    )
    assert result.exit == 0, result.err[-3000:]
    run = result.run
    assert run.ranks == (0, 1)
    assert [updates(run, rank) for rank in run.ranks] == [[1, 2, 3, 4], [1, 2, 3, 4]]
    assert run.verdict is not None
    assert (run.verdict.rank, run.verdict.step, run.verdict.phase) == (1, 3, "input")
    assert "rank 1" in result.err


FOUR_FAULTS = """
import mindspore as ms, numpy as np
from mindspore import nn, ops
from mindspore.communication import get_rank, init

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
rank = get_rank()
net, reduce = nn.Dense(4, 1, weight_init="ones", bias_init="zeros"), ops.AllReduce()
optimizer = nn.SGD(net.trainable_params(), 1e-6)

def forward(x, scale):
    return (net(x) ** 2).mean() * scale

differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
for step in range(1, 26):
    if step == 17:
        net.weight.asnumpy()[...] = 1.0  # equal again
    same = 4 <= step <= 6
    rng = np.random.default_rng(step * 2 + (0 if same else rank))
    scale = 1000.0 if rank == 1 and 9 <= step <= 11 else 1.0
    x = ms.Tensor(rng.standard_normal((64, 4)).astype(np.float32))
    loss, gradients = differentiate(x, ms.Tensor(scale, ms.float32))
    averaged = tuple(reduce(gradient) / 2 for gradient in gradients)
    optimizer(gradients if step >= 20 else averaged)
    if rank == 1 and step == 14:
        net.weight.asnumpy()[0, 0] += 1
"""


def test_what_is_wrong_between_two_ranks_of_msrun_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GLOG_v", "3")
    port = f"--master_port={free_port()}"
    launcher = (str(bin / "msrun"), "--worker_num=2", "--local_worker_num=2", "--join=True", port)
    live = Live(tmp_path)
    try:
        live.train(FOUR_FAULTS, launcher=launcher, pause_at_start=1)
        debug = live.debugger(ranks=2)
        debug.wait("paused")
        debug.step(21)
        assert [(rank.rank, rank.step) for rank in debug.wait("paused").ranks] == [(0, 21), (1, 21)]
        found = [("same_batch", 6), ("loss_apart", 11), ("weights_out_of_sync", 15), ("gradients_not_averaged", 20)]
        first: dict[str, int] = {}
        hits = debug.wait_hit(len(found))
        while len({hit.condition for hit in hits}) < len(found):
            hits = debug.wait_hit(len(hits) + 1)
        for hit in hits:
            assert hit.rank == 1
            first.setdefault(hit.condition, hit.step)
        assert list(first.items()) == found
        debug.stop()
        debug.wait("ended")
    finally:
        live.end()
