"""How a module, an optimizer or a call was set up, as a run records it."""

from __future__ import annotations

import torch
from torch import nn

from misstep.adapters.settings import arguments_of, settings_of
from misstep.core.graph import Node
from misstep.store.codec import decode, encode


def test_a_module_tells_its_plain_attributes() -> None:
    assert settings_of(nn.BatchNorm2d(8, momentum=0.2)) == {
        "num_features": "8",
        "eps": "1e-05",
        "momentum": "0.2",
        "affine": "True",
        "track_running_stats": "True",
    }


def test_an_optimizer_tells_those_of_its_first_group() -> None:
    found = settings_of(torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1, momentum=0.9))
    assert (found["lr"], found["momentum"]) == ("0.1", "0.9")


def test_a_property_is_never_run() -> None:
    class Odd:
        @property
        def eps(self) -> float:
            raise AssertionError

    assert settings_of(Odd()) == {}


def test_a_call_tells_its_plain_arguments_by_name() -> None:
    assert arguments_of((torch.ones(2), 0.2), {"dim": (1, 2)}, ["self", "slope"]) == {"slope": "0.2", "dim": "(1, 2)"}


def test_settings_survive_the_run_directory_and_old_nodes_have_none() -> None:
    node = Node(0, "bn", "module", "BatchNorm2d", settings={"eps": "1e-05"})
    assert decode(Node, encode(node)) == node
    assert "settings" not in encode(Node(0, "bn", "module", "BatchNorm2d"))
