"""`misstep determinism`: two runs compared, and the source of the first difference named."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import planted_randomness
import pytest

from misstep.migration.determinism.compare import first_difference, fixed
from misstep.migration.determinism.record import Operation, Record

SAMPLE = random.Random(4).sample(sorted(planted_randomness.PLANTED), 1)


def record(**changes: object) -> Record:
    """A run of two steps in which everything is seeded."""
    made: dict[str, object] = {
        "weights": {"fc.weight": "w"},
        "inputs": [["a", "b"], ["c", "d"]],
        "operations": [Operation("aten.mm.default", "a w", "o", "net.py:3")],
        "gradients": [{"0": "g"}],
        "generators": {"torch": ("0", "t"), "numpy": ("0", "n"), "python": ("p", "p")},
        "seed": 1,
    }
    return Record(**{**made, **changes})  # type: ignore[arg-type]


def cause(one: Record, other: Record) -> tuple[str, str] | None:
    found = first_difference(one, other)
    return None if found is None else (found.stage, found.cause)


def test_two_equal_runs_have_no_difference() -> None:
    assert cause(record(), record()) is None
    assert all(fixed(record(), record()).values())


def test_weights_that_differ_blame_the_generator_that_stood_elsewhere() -> None:
    other = record(weights={"fc.weight": "v"}, generators={"torch": ("0", "u"), "numpy": ("0", "n")}, seed=2**60)
    assert cause(record(seed=2**61), other) == ("weights", "seed")


def test_a_generator_nobody_used_is_not_blamed() -> None:
    generators = {"torch": ("0", "t"), "numpy": ("0", "n"), "python": ("q", "q")}
    assert cause(record(), record(weights={"fc.weight": "v"}, generators=generators)) == ("weights", "hash")


def test_two_seeds_somebody_chose_are_told_from_none() -> None:
    other = record(weights={"fc.weight": "v"}, generators={"torch": ("0", "u")}, seed=2)
    assert cause(record(), other) == ("weights", "clock")


def test_the_same_samples_in_another_order_are_a_shuffle() -> None:
    assert cause(record(), record(inputs=[["d", "a"], ["b", "c"]])) == ("inputs", "shuffle")


def test_other_samples_out_of_workers_blame_the_workers() -> None:
    assert cause(record(workers=2), record(inputs=[["x", "y"], ["z", "q"]], workers=2)) == ("inputs", "workers")


def made_by(name: str, given: str, made: str, settings: str = "") -> Record:
    return record(operations=[Operation(name, given, made, "net.py:3", settings)], gradients=[{"0": made}])


def test_an_operator_is_judged_by_what_went_in() -> None:
    assert cause(made_by("aten.mm.default", "a", "1"), made_by("aten.mm.default", "a", "2")) == ("forward", "operator")
    assert cause(made_by("aten.mul.Tensor", "a", "1"), made_by("aten.mul.Tensor", "b", "2")) == ("forward", "outside")
    dropouts = [made_by("aten.bernoulli_.float", "a", made) for made in "12"]
    assert cause(*dropouts) == ("forward", "dropout")


def test_memory_nobody_wrote_is_blamed_when_it_is_read() -> None:
    def run(junk: str, made: str) -> Record:
        operations = [
            Operation("aten.empty.memory_format", "", junk, "net.py:2"),
            Operation("aten.add.Tensor", f"a {junk}", made, "net.py:3"),
        ]
        return record(operations=operations)

    assert cause(run("1", "x"), run("2", "x")) is None  # written over before anybody read it
    assert cause(run("1", "x"), run("2", "y")) == ("forward", "operator")


def examined(tmp_path: Path, text: str) -> dict[str, object]:
    script = tmp_path / "train.py"
    script.write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "misstep",
        "determinism",
        "--json",
        "--no-threads",
        "--",
        sys.executable,
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False, env=os.environ)
    assert done.stdout, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.story
@pytest.mark.parametrize("name", SAMPLE)
def test_a_planted_source_is_named(name: str, tmp_path: Path) -> None:
    found = examined(tmp_path, planted_randomness.program(name))
    difference = found["difference"]
    assert isinstance(difference, dict)
    assert difference["cause"] == planted_randomness.PLANTED[name][0]


@pytest.mark.slow
@pytest.mark.story
def test_a_seeded_program_is_declared_deterministic(tmp_path: Path) -> None:
    assert examined(tmp_path, planted_randomness.BASE)["deterministic"]


@pytest.mark.slow
@pytest.mark.story
def test_a_command_that_trains_nothing_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "idle.py"
    script.write_text("import json\n", encoding="utf-8")
    command = [sys.executable, "-m", "misstep", "determinism", "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 1
    assert "no PyTorch training step was seen" in done.stderr
