"""The hub comes and goes: killed while training is paused, started after training, and nothing is lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from livestory import FOREVER, NETWORK, Live
from story import MISSTEP, environment_of_a_user

from misstep.client import connect
from misstep.store.reading.reader import open_run

pytestmark = pytest.mark.story


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.end()


def test_a_hub_killed_while_training_is_paused_is_replaced_by_another(live: Live):
    live.train(FOREVER, pause_at_start=1, grace_seconds=0)
    debug = live.debugger()
    debug.wait("paused")
    debug.step(2)
    debug.wait("paused")
    assert live.hub is not None
    live.hub.stop()
    live.hub = None

    live.start_hub()
    again = live.debugger()
    state = again.wait("paused")
    assert state.step == 2
    again.step()
    assert again.wait("paused").step == 3


def test_training_goes_on_by_itself_when_no_debugger_comes(live: Live):
    script = NETWORK + "\nfor _ in range(3):\n    step(torch.randn(4, 8))\nprint('went on', flush=True)\n"
    run = live.train(script, hub=False, pause_at_start=1, grace_seconds=1.5)
    assert live.exit() == 0
    said = live.output()
    assert "no debugger is connected; training goes on by itself in 1.5 s" in said
    assert said.index("no debugger came within 1.5 s") < said.index("went on")
    states = [event.facts["state"] for event in open_run(run).events("state")]
    assert states == ["paused", "running"]


def test_a_run_started_without_a_hub_is_picked_up_later(live: Live):
    live.train(FOREVER, hub=False)
    live.until(lambda: (live.base / "try" / "rank-0" / "journal.jsonl").exists())
    live.start_hub()
    debug = live.debugger()
    debug.pause()
    debug.wait("paused")
    hub_file = live.base / "try" / "hub.json"
    assert hub_file.stat().st_mode & 0o077 == 0
    debug.stop()
    debug.wait("ended")


def test_connect_starts_a_hub_by_itself_and_the_terminal_uses_it(live: Live):
    live.train(FOREVER, hub=False)
    live.until(lambda: (live.base / "try" / "run.json").exists())
    debug = connect("try", directory=str(live.base), wait_seconds=60)
    live.debuggers.append(debug)
    debug.wait("running")

    def misstep(*command: str) -> str:
        done = subprocess.run(
            [*MISSTEP, *command, "--dir", str(live.base)],
            env=environment_of_a_user(),
            cwd=live.folder,
            capture_output=True,
            text=True,
            timeout=90,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert misstep("pause", "try").startswith("paused at step")
    at = debug.wait("paused").step
    assert misstep("step", "try", "2").startswith(f"paused at step {at + 2}")
    assert "after decoder (forward)" in misstep("to", "try", "decoder")
    typed = misstep(
        "debug",
        "try",
        *("-c", "where"),
        *("-c", "p decoder.weight:param[0,:3]"),
        *("-c", "watch abs_mean >= 0 on decoder.weight:grad then pause"),
        *("-c", "s 1"),
        *("-c", "diff prev decoder.weight:param"),
        *("-c", "find type:Linear"),
        *("-c", "node encoder.1"),
        *("-c", "hits"),
    )
    assert "float32 [3]" in typed
    assert "max |Δ|" in typed
    assert "2 nodes" in typed
    for told in ("from       encoder.0  float32[4, 16]", "to         decoder  float32[4, 16]", "train.py:"):
        assert told in typed
    assert "decoder.weight:grad@" in typed
    assert "would hit 1 of 1 tensors now" in misstep(
        "watch", "try", "abs_mean >= 0", "--on", "decoder.bias:grad", "--try"
    )
    assert "decoder.weight:grad" in misstep("hits", "try")
    assert misstep("go", "try").startswith(("running", "pausing", "paused"))
    misstep("stop", "try")
    assert live.exit() == 130
    assert debug.url.startswith("http://127.0.0.1:")


def test_the_debugger_adds_no_web_framework_to_the_trainee(live: Live):
    script = NETWORK + (
        "\nimport sys\nfor _ in range(20):\n    step(torch.randn(4, 8))\n"
        "print(sorted(name for name in ('starlette', 'uvicorn', 'click', 'rich') if name in sys.modules))\n"
    )
    live.train(script, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.go()
    assert live.exit() == 0
    assert "[]" in live.output()
