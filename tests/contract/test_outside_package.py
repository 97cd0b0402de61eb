"""A package that misstep has never heard of brings a framework, and everything works on it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.stories.story import MISSTEP, SECONDS, environment_of_a_user

from misstep.store.reading.reader import open_run
from misstep.store.runs import list_runs
from misstep.testing import fake, fake_framework

REGISTERED = """
from misstep.adapters.registry import Framework

TOY = Framework(
    "toy", "toyframe", "toyframe_misstep.adapter:FakeAdapter",
    lambda toy, thing: isinstance(thing, toy.FakeModel | toy.FakeTensor),
)
"""
TRAINING = """
import numpy as np
import toyframe
from toyframe import Descent, FakeTensor, Linear, Sequential, Tanh

model = Sequential(Linear(3, 5), Tanh(), Linear(5, 2))
optimizer = Descent(model.named_parameters(), 0.1)
x = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
for step in range(1, 4):
    optimizer.clear()
    y = model(FakeTensor(x))
    if step == 3:
        y = toyframe.log(toyframe.scale(toyframe.exp(y), -1.0))
    toyframe.mean_square(y, FakeTensor(np.zeros((6, 2), np.float32))).backward()
    optimizer.update()
"""

Outside = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    """Runs a command where the framework `toyframe` and its adapter's own distribution are installed."""
    site = tmp_path / "site"
    for name, text in {
        "toyframe/__init__.py": Path(fake_framework.__file__).read_text(encoding="utf-8"),
        "toyframe_misstep/__init__.py": REGISTERED,
        "toyframe_misstep/adapter.py": as_toy(Path(fake.__file__).read_text(encoding="utf-8")),
        "toyframe-7.dist-info/METADATA": "Metadata-Version: 2.1\nName: toyframe\nVersion: 7\n",
        "toyframe_misstep-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: toyframe-misstep\nVersion: 1\n",
        "toyframe_misstep-1.dist-info/entry_points.txt": "[misstep.adapters]\ntoy = toyframe_misstep:TOY\n",
        "broken-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: broken\nVersion: 1\n",
        "broken-1.dist-info/entry_points.txt": "[misstep.adapters]\nbroken = not_there:X\n",
        "test_toy.py": as_toy((Path(__file__).parent / "test_fake.py").read_text(encoding="utf-8")),
    }.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    environment = environment_of_a_user()
    environment["PYTHONPATH"] += f":{site}"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True, timeout=SECONDS)

    return run


def as_toy(text: str) -> str:
    """Our fake framework, as a stranger's: under another name, with nothing of misstep.testing in it."""
    return (
        text.replace("from misstep.testing import fake_framework", "import toyframe")
        .replace("misstep.testing.fake_framework", "toyframe")
        .replace("fake_framework", "toyframe")
        .replace('name = "fake"', 'name = "toy"')
        .replace('{"fake": "1"', '{"toyframe": "7"')
        .replace("test_fake.py", "test_toy.py")
    )


def test_its_adapter_is_held_to_the_contract_that_ships(outside: Outside) -> None:
    done = outside(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_toy.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


@pytest.mark.story
def test_a_training_with_it_is_watched_by_misstep_run(outside: Outside, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING, encoding="utf-8")
    done = outside(*MISSTEP, "run", "--level", "op", sys.executable, str(script))
    (only,) = list_runs(tmp_path / "site" / "missteps")
    run = open_run(only.path)
    assert [step.number for step in run.steps()] == [0, 1, 2, 3], done.stderr
    assert run.info.frameworks == {"toyframe": "7"}
    assert run.verdict is not None
    assert (run.verdict.step, run.verdict.op, run.verdict.precision) == (3, "log", "operator")


@pytest.mark.story
def test_env_lists_it_beside_ours_and_says_which_one_cannot_be_loaded(outside: Outside) -> None:
    told = json.loads(outside(*MISSTEP, "env", "--json").stdout)["frameworks"]
    assert set(told) == {"torch", "mindspore", "toyframe", "broken"}
    assert told["toyframe"] == {"version": "7", "works": True, "problem": ""}
    assert "No module named 'not_there'" in told["broken"]["problem"]
