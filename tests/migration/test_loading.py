"""Why weights are not loaded, each reason planted."""

from __future__ import annotations

import pytest

from misstep.migration.frameworks.base import Framework, Param
from misstep.migration.loading import why_not_loaded
from misstep.migration.params import Inventory

NETWORK = {"encoder.fc.weight": (4, 3), "encoder.fc.bias": (4,), "head.weight": (2, 4), "head.bias": (2,)}


def side(shapes: dict[str, tuple[int, ...]], framework: Framework = "mindspore") -> Inventory:
    return Inventory("side", framework, tuple(Param(name, shape, "float32") for name, shape in shapes.items()))


def test_a_file_with_the_networks_own_names_loads() -> None:
    assert why_not_loaded(side(NETWORK), side(NETWORK)) == []


@pytest.mark.parametrize("prefix", ["backbone.", "net.model."])
def test_a_prefix_in_the_file_is_named_with_the_rename(prefix: str) -> None:
    (reason,) = why_not_loaded(side({prefix + name: shape for name, shape in NETWORK.items()}), side(NETWORK))
    assert (reason.why, reason.old, reason.new, len(reason.names)) == ("prefix", f"{prefix}*", "*", 4)


def test_a_prefix_in_the_network_is_named_with_the_rename() -> None:
    (reason,) = why_not_loaded(side(NETWORK), side({f"network.{name}": shape for name, shape in NETWORK.items()}))
    assert (reason.why, reason.old, reason.new) == ("prefix", "*", "network.*")


def test_a_file_of_the_other_framework_is_told_first() -> None:
    (reason,) = why_not_loaded(side({"a.running_mean": (4,)}, "torch"), side(NETWORK))
    assert reason.why == "framework"


def test_shapes_missing_and_unexpected_names_are_told_apart() -> None:
    held = {**NETWORK, "head.weight": (9, 4), "old.scale": (7, 7, 7)}
    del held["encoder.fc.bias"]
    reasons = {one.why: one.names for one in why_not_loaded(side(held), side(NETWORK))}
    assert reasons == {
        "shape": ("head.weight",),
        "missing": ("encoder.fc.bias",),
        "unexpected": ("old.scale",),
    }
