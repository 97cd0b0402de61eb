"""Which parameter is which: names, shapes, order and values, each where the others do not tell."""

from __future__ import annotations

import numpy as np
import pytest
from batches import batch_for
from twin_nets import NAMES, Twins

from misstep.compare.mapfile import NameMap
from misstep.migration.frameworks.base import Array, Param
from misstep.migration.layouts import layout_of_values, turned, undone
from misstep.migration.pairing import Pairing, pair
from misstep.migration.params import Inventory, inventory_of
from misstep.migration.words import torch_leaf


def side(layers: dict[str, str], **arrays: Array) -> Inventory:
    """An inventory of a side: {"fc.weight": "Linear"} with arrays named fc_weight."""
    params = []
    for name, layer in layers.items():
        value = arrays.get(name.replace(".", "_"), np.zeros((4, 4), np.float32))
        params.append(Param(name, value.shape, "float32", "param", True, layer, fetch=lambda value=value: value))
    return Inventory("side", None, tuple(params))


def names_of(found: Pairing) -> dict[str, str]:
    return {one.left.name: one.right.name for one in found.matches}


def as_torch_says(name: str) -> str:
    owner, _, leaf = name.rpartition(".")
    return torch_leaf(leaf) if owner else leaf


@pytest.mark.mindspore
@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_of_a_network_written_twice_finds_its_partner(name: str, twins: Twins) -> None:
    left, right = twins(name)
    inputs = [value for key, value in batch_for(name).items() if key != "label"]
    order = tuple([call.path for call in one.half.run(one.model, inputs, train=False).calls] for one in (left, right))
    found = pair(inventory_of(left), inventory_of(right), order=(order[0], order[1]))
    assert found.complete
    assert {as_torch_says(one.left.name) for one in found.matches} >= {
        as_torch_says(one.right.name) for one in found.matches
    }
    assert found.left.trainable == found.right.trainable


def test_indices_that_count_differently_are_not_taken_for_names() -> None:
    left = side({"net.0.weight": "Linear", "net.2.weight": "Linear", "net.4.weight": "Linear"})
    right = side({"net.0.weight": "Dense", "net.1.weight": "Dense", "net.2.weight": "Dense"})
    assert names_of(pair(left, right)) == {
        "net.0.weight": "net.0.weight",
        "net.2.weight": "net.1.weight",
        "net.4.weight": "net.2.weight",
    }


def test_equal_values_decide_against_the_names() -> None:
    one, other = np.random.default_rng(0).random((2, 4, 4), np.float32)
    left = side({"a.weight": "Linear", "b.weight": "Linear"}, a_weight=one, b_weight=other)
    right = side({"a.weight": "Dense", "b.weight": "Dense"}, a_weight=other, b_weight=one)
    assert names_of(pair(left, right)) == {"a.weight": "a.weight", "b.weight": "b.weight"}
    assert names_of(pair(left, right, values=True)) == {"a.weight": "b.weight", "b.weight": "a.weight"}


def test_a_name_whose_shape_does_not_fit_is_shown_as_such() -> None:
    left = side({"fc.weight": "Linear"}, fc_weight=np.zeros((4, 3)))
    right = side({"fc.weight": "Dense"}, fc_weight=np.zeros((7, 2)))
    (only,) = pair(left, right).matches
    assert not only.fits


def test_a_prefix_of_one_side_is_looked_through() -> None:
    left = side({"encoder.fc.weight": "Linear", "encoder.norm.weight": "Linear"})
    right = side({"model.net.encoder.fc.weight": "Dense", "model.net.encoder.norm.weight": "Dense"})
    assert names_of(pair(left, right)) == {
        "encoder.fc.weight": "model.net.encoder.fc.weight",
        "encoder.norm.weight": "model.net.encoder.norm.weight",
    }


def test_the_map_file_has_the_first_word() -> None:
    left, right = side({"a.weight": "Linear"}), side({"a.weight": "Dense", "b.weight": "Dense"})
    assert names_of(pair(left, right, names=NameMap(names={"a.weight": "b.weight"}))) == {"a.weight": "b.weight"}


def test_what_has_no_partner_comes_with_a_suggestion() -> None:
    left = side({"head.weight": "Linear"}, head_weight=np.zeros((3, 5)))
    right = side({"tail.scale": "Scale"}, tail_scale=np.zeros((3, 5)))
    found = pair(left, right)
    assert [one.suggestion for one in found.only_left] == ["tail.scale"]


def test_gates_filed_in_another_order_are_found_by_their_values() -> None:
    ifgo = np.random.default_rng(1).random((20, 3))
    iofg = turned(ifgo, "gates 0 3 1 2", (20, 3))
    layout = layout_of_values(ifgo, iofg)
    assert layout == "gates 0 3 1 2"
    assert np.array_equal(turned(iofg, undone(layout), (20, 3)), ifgo)
