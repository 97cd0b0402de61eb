"""A live training for stories: a real script in a process of its own, a hub in this one, and a debugger in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from story import environment_of_a_user

from misstep.capture.attach import environment_for_child
from misstep.client import Debugger
from misstep.hub import RunningHub, start_hub
from waiting import connected, when

SECONDS = 90.0

NETWORK = """
import torch

torch.manual_seed(0)

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh())
        self.decoder = torch.nn.Linear(16, 1)

    def forward(self, x):
        return self.decoder(self.encoder(x))

model = Network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def step(x):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""
FOREVER = (
    NETWORK
    + """
while True:
    step(torch.randn(4, 8))
"""
)


class Live:
    """One training under a hub; everything it started is ended with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = folder / "missteps"
        self.base.mkdir(exist_ok=True)
        self.hub: RunningHub | None = None
        self.process: subprocess.Popen[str] | None = None
        self.debuggers: list[Debugger] = []

    def start_hub(self, **options: Any) -> RunningHub:
        self.hub = start_hub(self.base, **options)
        return self.hub

    def train(
        self, script: str, *, name: str = "try", launcher: tuple[str, ...] = (), hub: bool = True, **settings: Any
    ) -> Path:
        """Start the script under misstep, in the background; its run directory."""
        file = self.folder / "train.py"
        file.write_text(script)
        run = self.base / name
        more = {f"MISSTEP_{key.upper()}": str(value) for key, value in settings.items()}
        if hub:
            self.hub = self.hub or self.start_hub()
            more.update(self.hub.environment())
        environment = environment_for_child(environment_of_a_user(**more), run)
        self.process = subprocess.Popen(
            [sys.executable, *launcher, str(file)],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return run

    def debugger(self, run: str = "try", *, ranks: int = 1) -> Debugger:
        """Once all ranks are connected."""
        assert self.hub is not None
        connected(self.hub, run, self.process, ranks=ranks)
        debugger = Debugger(run, self.hub.url, self.hub.token, directory=self.base / run)
        self.debuggers.append(debugger)
        return debugger

    def until(self, happened: Callable[[], Any]) -> Any:
        """Once it is true; asked whenever a file of a run changes."""
        assert self.process is not None
        return when(happened, self.base, self.process)

    def output(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def exit(self) -> int:
        assert self.process is not None
        return self.process.wait(SECONDS)

    def end(self) -> None:
        for debugger in self.debuggers:
            debugger.close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
        if self.hub is not None:
            self.hub.stop()
        self._end_background_hub()

    def _end_background_hub(self) -> None:
        """A hub that connect() started ends by itself after ten minutes; a story does not wait for that."""
        try:
            pid = int(json.loads((self.base / "hub.json").read_text())["pid"])
        except (OSError, ValueError, KeyError):
            return
        if pid != os.getpid():
            os.kill(pid, signal.SIGTERM)
