"""Parameters are what was typed, and what the configuration file of that time said."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from misstep.hub.listing.parameters import parameters_of


@pytest.mark.parametrize(
    ("typed", "parameters"),
    [
        ("python train.py --lr 3e-4 --batch-size=32", {"lr": 3e-4, "batch_size": 32}),
        ("python train.py --amp --no-bias", {"amp": True, "bias": False}),
        ("python -m pkg.train model.width=64 ++opt=adam", {"model.width": 64, "opt": "adam"}),
        ("torchrun --nproc_per_node=2 train.py --lr 1", {"lr": 1}),
        ("python train.py --shift -1e-3 --layers 64 64", {"shift": -1e-3, "layers": "64 64"}),
        ("python train.py --fast true data/", {"fast": "true data/"}),
        ("python train.py --api-key abc --auth_token=x --lr 1", {"lr": 1}),
        ("python train.py", {}),
        ("", {}),
    ],
)
def test_every_usual_way_to_write_an_option_is_read(typed: str, parameters: dict[str, object]) -> None:
    assert parameters_of(typed.split()) == parameters


def configured(folder: Path, *, started: float, host: str) -> dict[str, object]:
    (folder / "base.toml").write_text('lr = 1e-3\n[model]\nwidth = 64\nname = "vit"\n')
    os.utime(folder / "base.toml", (100.0, 100.0))
    command = ["python", "train.py", "--config", "base.toml", "--lr", "3e-4"]
    return dict(parameters_of(command, directory=str(folder), started=started, host=host))


def test_a_configuration_file_adds_what_nobody_typed(tmp_path: Path) -> None:
    found = configured(tmp_path, started=200.0, host=socket.gethostname())
    assert found == {"config": "base.toml", "lr": 3e-4, "model.width": 64, "model.name": "vit"}


def test_a_configuration_file_written_since_says_nothing_of_the_run(tmp_path: Path) -> None:
    assert configured(tmp_path, started=50.0, host=socket.gethostname()) == {"config": "base.toml", "lr": 3e-4}


def test_a_file_of_another_machine_is_not_looked_for_here(tmp_path: Path) -> None:
    assert configured(tmp_path, started=200.0, host="elsewhere") == {"config": "base.toml", "lr": 3e-4}
