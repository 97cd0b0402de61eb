"""`misstep params`, as typed."""

from __future__ import annotations

import json

import pytest
from story import RunCommand, Write

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

TORCH = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3)
        self.norm = nn.BatchNorm1d(4)
        self.out = nn.Linear(4, 2)
        self.out.weight.requires_grad = False

def build():
    return Net()
"""

MINDSPORE = """
from mindspore import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, has_bias=True)
        self.norm = nn.BatchNorm1d(4)
        self.extra = nn.Dense(7, 3)

def build():
    return Net()
"""


def test_one_network_is_counted_and_its_frozen_layers_named(misstep_command: RunCommand, write: Write) -> None:
    write("a.py", TORCH)
    done = misstep_command("params", "a.py:build", "--lang", "en")
    assert done.exit == 0
    assert "9 parameters, 55 numbers, 38 trainable" in done.out
    assert "frozen: out.weight" in done.out


def test_two_networks_are_paired_and_what_is_alone_is_named(misstep_command: RunCommand, write: Write) -> None:
    write("a.py", TORCH)
    write("b.py", MINDSPORE)
    done = misstep_command("params", "a.py:build", "b.py:build", "--json")
    assert done.exit == 3
    facts = json.loads(done.out)
    layouts = {one["left"]: (one["right"], one["layout"]) for one in facts["pairs"]}
    assert layouts["conv.weight"] == ("conv.weight", "reshape")
    assert layouts["norm.running_var"] == ("norm.moving_variance", "")
    assert [one["name"] for one in facts["only_left"]] == ["norm.num_batches_tracked", "out.weight", "out.bias"]
    assert [one["name"] for one in facts["only_right"]] == ["extra.weight", "extra.bias"]


def test_a_file_without_the_function_says_which_functions_it_has(misstep_command: RunCommand, write: Write) -> None:
    write("a.py", TORCH)
    done = misstep_command("params", "a.py:biuld", "--lang", "en")
    assert done.exit == 1
    assert "has no function 'biuld'; did you mean build?" in done.err
