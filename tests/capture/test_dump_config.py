"""MindSpore's dump configuration, read for either framework."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.capture.fakes import trained
from tests.capture.test_dump import kept

from misstep.capture.keep.mindspore_config import iterations, read_dump_config
from misstep.core.address import Address
from misstep.errors import SettingError

COMMON = {
    "op_debug_mode": 0,
    "dump_mode": 0,
    "path": "/tmp/dump",
    "net_name": "Net",
    "iteration": "0|2",
    "saved_data": "tensor",
    "input_output": 0,
    "kernels": [],
    "support_device": [0, 1, 2, 3, 4, 5, 6, 7],
    "statistic_category": ["max", "l2norm"],
    "overflow_number": 0,
    "initial_iteration": 0,
    "file_format": "npy",
}
E2E = {
    "enable": True,
    "trans_flag": True,
    "stat_calc_mode": "host",
    "device_stat_precision_mode": "high",
    "sample_mode": 0,
    "sample_num": 100,
    "save_kernel_args": False,
}


def written(folder: Path, *, e2e: dict[str, Any] | None = None, asynchronous: Any = None, **common: Any) -> str:
    said: dict[str, Any] = {"common_dump_settings": {**COMMON, **common}, "e2e_dump_settings": {**E2E, **(e2e or {})}}
    if asynchronous is not None:
        said["async_dump_settings"] = asynchronous
    file = folder / "dump.json"
    file.write_text(json.dumps(said), encoding="utf-8")
    return str(file)


def steps_of(addresses: list[str]) -> set[str]:
    return {address.partition("@")[2] for address in addresses}


def test_iterations_count_from_zero_with_both_ends() -> None:
    assert iterations("0|5-8|100-120") == ((1, 1), (6, 9), (101, 121))
    assert iterations("all") is None
    with pytest.raises(SettingError, match="they look like"):
        iterations("1,2")


def test_everything_of_the_iterations_is_dumped_operators_too(tmp_path: Path) -> None:
    run = trained(tmp_path, dump_config=written(tmp_path))
    assert steps_of(kept(run)) == {"1", "3"}
    assert {"fc1/linear:output@1", "fc1:output@1", "fc1.weight:grad@3", "fc1.weight:param@3"} <= set(kept(run))


def test_the_first_iteration_may_have_another_number(tmp_path: Path) -> None:
    config = read_dump_config(written(tmp_path, initial_iteration=100, iteration="5|100|102-103"))
    assert config.spec.steps == ((1, 1), (3, 4))


def test_a_key_that_changes_nothing_is_told_once_with_the_reason(tmp_path: Path) -> None:
    quiet = trained(tmp_path / "quiet", dump_config=written(tmp_path))
    assert [event.facts["text"] for event in quiet.events("warning")] == []
    e2e = {"trans_flag": False, "stat_calc_mode": "device", "device_stat_precision_mode": "low"}
    config = written(tmp_path, e2e={**e2e, "save_kernel_args": True, "enable": False}, file_format="bin")
    run = trained(tmp_path / "told", dump_config=config)
    told = [event.facts["text"].removeprefix("dump configuration: ") for event in run.events("warning")]
    keys = ["file_format", "trans_flag", "stat_calc_mode", "device_stat_precision_mode", "save_kernel_args", "neither"]
    assert [text.split()[0].rstrip(":") for text in told] == keys


def test_mindspores_own_variable_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", written(tmp_path, iteration="1"))
    assert steps_of(kept(trained(tmp_path))) == {"2"}


@pytest.mark.parametrize(
    ("kernels", "nodes"),
    [
        (["fc1/linear"], {"fc1/linear"}),
        (["LINEAR"], {"fc1/linear", "fc2/linear", "fc1", "fc2", "fc1/linearGrad", "fc2/linearGrad"}),
        (["name-regex(^block.*tanh$)"], {"block.0/tanh", "block.1/tanh"}),
    ],
)
def test_kernels_are_names_types_or_regular_expressions(tmp_path: Path, kernels: list[str], nodes: set[str]) -> None:
    run = trained(tmp_path, dump_config=written(tmp_path, dump_mode=1, kernels=kernels))
    assert {stored.address.node for stored in run.tensors()} == nodes


@pytest.mark.parametrize(("which", "roles"), [(1, {"input", "grad_output"}), (2, {"output", "grad_input"})])
def test_inputs_or_outputs_alone(tmp_path: Path, which: int, roles: set[str]) -> None:
    run = trained(tmp_path, dump_config=written(tmp_path, input_output=which, dump_mode=1, kernels=["fc2"]))
    assert {stored.address.role for stored in run.tensors()} == roles


def test_statistics_alone_keep_rows_and_no_values(tmp_path: Path) -> None:
    run = trained(tmp_path, dump_config=written(tmp_path, saved_data="statistic"))
    assert run.tensors() == []
    assert run.stats("fc1/linear:output@1")


def test_overflow_mode_keeps_the_operators_that_overflow_and_what_they_were_given(tmp_path: Path) -> None:
    config = written(tmp_path, op_debug_mode=3, iteration="all", overflow_number=1)
    run = trained(tmp_path, fails_at=2, steps=2, dump_config=config)
    assert kept(run) == ["body/scale:output@2", "body/log:output@2"]
    assert np.isfinite(run.tensor("body/scale:output@2")).all()
    assert np.isnan(run.tensor("body/log:output@2")).all()


def test_mode_four_keeps_only_what_the_overflowing_operator_was_given(tmp_path: Path) -> None:
    config = written(tmp_path, op_debug_mode=4, iteration="all", overflow_number=1)
    assert kept(trained(tmp_path, fails_at=2, steps=2, dump_config=config)) == ["body/scale:output@2"]


def test_a_sample_is_spread_over_the_tensor(tmp_path: Path) -> None:
    config = written(tmp_path, e2e={"sample_mode": 1, "sample_num": 5}, dump_mode=1, kernels=["fc1"])
    run = trained(tmp_path, dump_config=config, dump="fc1:output@1")
    assert run.tensor("fc1:output@1").shape == (4, 5)  # asked for as a whole elsewhere: the whole wins
    assert run.tensor("fc1:output@3").shape == (5,)


def test_the_asynchronous_section_writes_from_a_thread_of_its_own(tmp_path: Path) -> None:
    config = written(tmp_path, e2e={"enable": False}, asynchronous={"enable": True, "op_debug_mode": 0})
    assert read_dump_config(config).asynchronous
    run = trained(tmp_path, dump_config=config)
    assert steps_of(kept(run)) == {"1", "3"}
    assert run.verify() == []


def test_path_and_name_are_where_an_export_goes(tmp_path: Path) -> None:
    config = read_dump_config(written(tmp_path, path="/data/dump", net_name="ResNet"))
    assert (config.path, config.net_name, config.statistics) == ("/data/dump", "ResNet", ("max", "l2norm"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"dump_mode": 2}, "dump_mode 2 marks targets with set_dump"),
        ({"dump_mode": "all"}, "dump_mode is 'all'; it is one of 0, 1, 2"),
        ({"saved_data": "tensors"}, "saved_data is 'tensors'; it is one of tensor, statistic, full"),
        ({"kernels": "conv"}, "kernels is 'conv', not a list of names"),
        ({"kernels": ["name-regex(()"]}, "which is no regular expression"),
        ({"statistic_category": ["median"]}, "statistic_category has 'median'; known are max"),
        ({"iterations": "0"}, "iterations is not known in common_dump_settings"),
        ({"input_output": True}, "input_output is True; it is one of 0, 1, 2"),
        ({"file_format": "hdf5"}, "file_format is 'hdf5'; it is one of npy, bin"),
    ],
)
def test_a_key_that_cannot_be_met_is_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError) as error:
        read_dump_config(written(tmp_path, **wrong))
    assert said in str(error.value)


def test_a_key_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text('{"common_dump_settings": {"dump_mode": 0}}', encoding="utf-8")
    with pytest.raises(SettingError, match="path is missing from common_dump_settings"):
        read_dump_config(tmp_path / "dump.json")
    with pytest.raises(SettingError, match="no such dump configuration"):
        read_dump_config(tmp_path / "other.json")


def test_addresses_of_a_config_dump_carry_no_surprise(tmp_path: Path) -> None:
    run = trained(tmp_path, dump_config=written(tmp_path, dump_mode=1, kernels=["fc2"]))
    assert Address("fc2", "output", step=1, rank=0) in [stored.address for stored in run.tensors()]
