"""Whole tensors by pattern and step, on a hit, and what is said when some could not be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.capture.fakes import Net, trained

from misstep.capture.session import Session
from misstep.core.address import Address
from misstep.errors import AddressError, SettingError
from misstep.store.foreign.own_run import RunSource
from misstep.store.reading.reader import Run


def kept(run: Run, pattern: str = "*") -> list[str]:
    return [
        str(Address(a.node, a.role, a.slot, a.step, None, a.call)) for a in (t.address for t in run.tensors(pattern))
    ]


def test_what_fits_the_pattern_is_kept_at_its_steps_in_the_order_it_passed(tmp_path: Path) -> None:
    run = trained(tmp_path, dump="fc*:output@2:3")
    assert kept(run) == ["fc1:output@2", "fc2:output@2", "fc1:output@3", "fc2:output@3"]
    assert run.verify() == []


def test_kept_values_are_those_the_network_computed(tmp_path: Path) -> None:
    seen: dict[int, Any] = {}

    def look(session: Session, step: int, net: Net) -> None:
        seen[step] = net.fc1.weight.data.copy()

    run = trained(tmp_path, dump="fc1.weight:param@2;fc1:input;fc1:output", each_step=look)
    np.testing.assert_array_equal(run.tensor("fc1.weight:param@2"), seen[2])
    x, y = run.tensor("fc1:input@2"), run.tensor("fc1:output@2")
    np.testing.assert_allclose(y, x @ seen[1].T + 0 * y, atol=0.1)


def test_memory_that_passes_under_several_names_lies_in_the_pack_once(tmp_path: Path) -> None:
    run = trained(tmp_path, dump="block*:output@1", steps=1)
    stored = {str(Address(t.address.node, t.address.role)): t for t in run.tensors()}
    assert stored["block:output"].offset == stored["block.1:output"].offset
    assert stored["block:output"].offset != stored["block.0:output"].offset
    np.testing.assert_array_equal(run.tensor("block:output@1"), run.tensor("block.1:output@1"))


def test_initial_weights_are_step_zero(tmp_path: Path) -> None:
    first: list[Any] = []
    run = trained(
        tmp_path, dump="*:param@0", steps=1, each_step=lambda session, step, net: first.append(Net().fc1.weight.data)
    )
    assert kept(run) == ["fc1.weight:param@0", "fc1.bias:param@0", "fc2.weight:param@0", "fc2.bias:param@0"]
    np.testing.assert_array_equal(run.tensor("fc1.weight:param@0"), first[0])


def test_operators_are_looked_at_only_in_the_steps_they_are_dumped(tmp_path: Path) -> None:
    run = trained(tmp_path, dump="*/tanh*:output@2")
    assert {address.partition("@")[2] for address in kept(run)} == {"2"}
    assert "body/tanh:output@2" in kept(run)
    assert [step.captured for step in run.steps()] == ["module", "module", "op", "module"]


def test_a_dump_reaches_steps_that_are_only_guarded_otherwise(tmp_path: Path) -> None:
    run = trained(tmp_path, level="guard", dump="fc1:output@2")
    assert kept(run) == ["fc1:output@2"]
    assert [step.captured for step in run.steps()] == ["guard", "module", "guard"]


def test_a_dump_can_be_asked_for_and_ended_while_training_goes_on(tmp_path: Path) -> None:
    def change(session: Session, step: int, net: Net) -> None:
        if step == 1:
            session.dump("fc2:output")
        if step == 3:
            session.end_dump(1)

    run = trained(tmp_path, steps=5, each_step=change)
    # Asked for after step 1 was over and step 2 had begun, so from step 3 on; ended one step later in the same way.
    assert kept(run) == ["fc2:output@3", "fc2:output@4"]
    assert [event.facts["text"] for event in run.events("dump")] == ["fc2:output"]


def test_a_misspelt_pattern_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match="unknown role 'outptu'"):
        trained(tmp_path, dump="fc1:outptu")
    with pytest.raises(SettingError, match="cannot read the steps"):
        trained(tmp_path, before=lambda session: session.dump("fc1", steps="three"))


def test_a_watchpoint_that_trips_keeps_what_it_looks_at_and_what_it_was_made_of(tmp_path: Path) -> None:
    run = trained(tmp_path, fails_at=3, steps=3, watch="overflow on body:output then dump")
    assert kept(run, "*@3") == ["body:input@3", "body:output@3"]
    assert np.isfinite(run.tensor("body:input@3")).all()
    assert np.isnan(run.tensor("body:output@3")).all()


def test_every_tensor_of_the_step_that_tripped_is_still_there(tmp_path: Path) -> None:
    run = trained(tmp_path, fails_at=2, watch="overflow on *:output then dump", steps=2)
    assert {"fc1:output@2", "block:output@2", "body:output@2", "fc2:output@2"} <= set(kept(run))


def test_a_hit_brings_the_step_before_along_as_it_was(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", fails_at=4, steps=4, dump="*")
    watch = "overflow on *:output then dump; overflow on *:param then dump"
    run = trained(tmp_path / "hit", fails_at=4, steps=4, watch=watch, dump_hits=1)
    assert {address.partition("@")[2] for address in kept(run)} == {"3", "4"}
    outputs = {"fc1:output@3", "block:output@3", "block.1:output@3", "body:output@3", "fc2:output@3"}
    weights = {"fc1.weight:param@3", "fc2.bias:param@3"}  # written over since: copied once that was noticed
    assert outputs | weights <= set(kept(run))
    for address in kept(run, "*@3"):
        np.testing.assert_array_equal(run.tensor(address), whole.tensor(address), err_msg=address)
    places = {str(t.address.node): t.offset for t in run.tensors("block*:output@3")}
    assert places["block"] == places["block.1"] != places["block.0"]


def test_a_watchpoint_that_trips_every_step_dumps_only_the_first_of_them(tmp_path: Path) -> None:
    run = trained(tmp_path, steps=6, watch="max > -1e30 on fc1:output then dump", dump_hits=2)
    assert {address.partition("@")[2] for address in kept(run, "fc1:output")} == {"1", "2"}


def test_what_cannot_be_held_within_the_budget_is_counted_and_said(tmp_path: Path) -> None:
    run = trained(tmp_path, fails_at=2, width=300_000, steps=2, watch="overflow on *:output then dump", memory_mb=8)
    assert any("no room to hold" in event.facts["text"] for event in run.events("warning"))


def test_dumped_tensors_are_a_source_in_execution_order(tmp_path: Path) -> None:
    source = RunSource(trained(tmp_path, dump="*@1", steps=1).path)
    names = [str(entry) for entry in source.entries() if entry.role == "output"]
    assert names.index("fc1:output") < names.index("block:output") < names.index("body:output")
