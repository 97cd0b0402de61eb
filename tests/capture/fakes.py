"""A small training of the fake framework under a session: quick, and everything it computes is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from misstep.capture.session import Session
from misstep.settings import Settings
from misstep.store.reading.reader import Run, open_run
from misstep.testing import fake_framework as fake
from misstep.testing.fake import FakeAdapter
from misstep.testing.fake_framework import Descent, FakeModel, FakeTensor, Linear, Sequential, Tanh


class Body(FakeModel):
    """`fails_at` plants a logarithm of a negative number in that step."""

    fails_at = 0
    step = 0

    def forward(self, x: FakeTensor) -> FakeTensor:
        self.step += 1
        return fake.log(fake.scale(fake.exp(x), -1.0)) if self.step == self.fails_at else fake.tanh(x)


class Net(FakeModel):
    def __init__(self, width: int = 5) -> None:
        self.fc1, self.block, self.body, self.fc2 = (
            Linear(3, width),
            Sequential(Tanh(), Tanh()),
            Body(),
            Linear(width, 2),
        )

    def forward(self, x: FakeTensor) -> Any:
        return self.fc2(self.body(self.block(self.fc1(x))))


def trained(
    folder: Path,
    *,
    steps: int = 3,
    width: int = 5,
    fails_at: int = 0,
    learning_rate: float = 0.01,
    before: Callable[[Session], Any] = lambda session: None,
    each_step: Callable[[Session, int, Net], Any] = lambda session, step, net: None,
    **settings: Any,
) -> Run:
    """The run of a training of a few steps; `before` and `each_step` may use the session."""
    adapter = FakeAdapter()
    given = {"dir": str(folder), "strict": True, "recommended": False, **settings}
    with Session(Settings(given)) as session:
        session.use(adapter)
        before(session)
        random = np.random.default_rng(1)
        net = Net(width)
        net.body.fails_at = fails_at
        optimizer = Descent(net.named_parameters(), learning_rate)
        for step in range(1, steps + 1):
            x = FakeTensor(random.standard_normal((4, 3)).astype(np.float32))
            loss = fake.mean_square(net(x), FakeTensor(np.zeros((4, 2), np.float32)))
            optimizer.clear()
            loss.backward()
            optimizer.update()
            each_step(session, step, net)
        assert session.run_directory is not None
    return open_run(session.run_directory)
