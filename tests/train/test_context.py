"""How programs run: eager or compiled, the configuration file, seeds and what they leave open."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from misstep.capture.crash.config import recording
from misstep.errors import SettingError, TrainError
from misstep.settings import Settings
from misstep.train import Model, context, determinism_report, env_config, memory_reuse, set_memory_reuse, set_seed

from .conftest import TorchKit, regression


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    import mindspore as ms

    mode = ms.get_context("mode")
    yield
    context.reset_context()
    os.environ.pop("MISSTEP_ENV_CONFIG", None)
    torch.compiler.set_stance("default")
    ms.set_context(mode=mode)
    set_memory_reuse(True)


@pytest.fixture
def config_file(tmp_path: Path) -> Any:
    def write(table: Any) -> str:
        path = tmp_path / "mindspore_config.json"
        path.write_text(table if isinstance(table, str) else json.dumps(table), encoding="utf-8")
        return str(path)

    return write


# ── the configuration file of the guides ─────────────────────────────────────────────────────────────────────────────


def test_the_guides_recorder_configuration_is_honoured(config_file: Any) -> None:
    path = config_file({"rdr": {"enable": True, "mode": 1, "path": "/path/to/rdr/dir"}})
    context.set_context(env_config_path=path)
    recorder = env_config().rdr
    assert recorder == context.RecorderConfig(enable=True, mode=1, path=Path("/path/to/rdr/dir"))
    assert recorder.directory(rank=0) == Path("/path/to/rdr/dir/rank_0/rdr")


def test_the_flight_recorder_follows_the_configuration_of_set_context(config_file: Any) -> None:
    path = config_file({"rdr": {"enable": True, "mode": 2, "path": "/path/to/rdr/dir"}})
    context.set_context(env_config_path=path)
    followed = recording(Settings(), rank=0)
    assert (followed.enabled, followed.mode, followed.export) == (True, 2, "/path/to/rdr/dir/rank_0/rdr")


def test_the_guides_memory_reuse_configuration_is_honoured(config_file: Any) -> None:
    context.set_context(env_config_path=config_file({"sys": {"mem_reuse": False}}))
    assert env_config().mem_reuse is False
    assert memory_reuse().on is False
    context.set_context(env_config_path=config_file({"sys": {"mem_reuse": True}}))
    assert memory_reuse().on is True


def test_the_recorder_can_be_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env_config().rdr.enable is False
    monkeypatch.setenv("MS_RDR_ENABLE", "1")
    monkeypatch.setenv("MS_RDR_MODE", "2")
    monkeypatch.setenv("MS_RDR_PATH", "/path/to/root/dir")
    assert env_config().rdr == context.RecorderConfig(enable=True, mode=2, path=Path("/path/to/root/dir"))


def test_the_file_wins_over_the_environment(config_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_RDR_ENABLE", "1")
    monkeypatch.setenv("MS_RDR_PATH", "/from/environment")
    context.set_context(env_config_path=config_file({"rdr": {"enable": False}}))
    assert env_config().rdr == context.RecorderConfig(enable=False, path=Path("/from/environment"))
    context.set_context(env_config_path=config_file({"sys": {"mem_reuse": True}}))  # it says nothing of the recorder
    assert env_config().rdr.path == Path("/from/environment")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("{not json", "is no JSON"),
        ([1], "holds a list"),
        ({"rdrs": {}}, "did you mean rdr"),
        ({"rdr": {"enabled": True}}, "did you mean enable"),
        ({"rdr": {"enable": "true"}}, "without quotes"),
        ({"rdr": {"mode": 3}}, "1 .on an exception. or 2"),
        ({"rdr": {"path": "relative/dir"}}, "must be absolute"),
        ({"sys": {"mem_reuse": 1}}, "true or false"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(table: Any, says: str, config_file: Any) -> None:
    with pytest.raises(SettingError, match=says):
        context.set_context(env_config_path=config_file(table))


def test_a_missing_configuration_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot read env_config_path"):
        context.set_context(env_config_path=str(tmp_path / "nowhere.json"))


# ── modes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.mindspore
def test_the_mode_is_mindspores() -> None:
    import mindspore as ms

    context.set_context(mode=context.GRAPH_MODE)
    assert ms.get_context("mode") == ms.GRAPH_MODE == context.GRAPH_MODE
    context.set_context(mode=context.PYNATIVE_MODE)
    assert ms.get_context("mode") == ms.PYNATIVE_MODE == context.get_context("mode")


def test_pynative_mode_runs_eagerly_what_the_program_compiled() -> None:
    seen = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append(graph)
        return graph.forward

    doubled = torch.compile(lambda x: x * 2, backend=backend)
    context.set_context(mode=context.PYNATIVE_MODE)
    assert doubled(torch.ones(1)).item() == 2
    assert seen == []
    context.set_context(mode=context.GRAPH_MODE)
    assert doubled(torch.ones(1)).item() == 2
    assert len(seen) == 1


def test_graph_mode_compiles_a_models_network_and_trains_the_same(tmp_path: Path) -> None:
    kit = TorchKit()

    def trained() -> tuple[Any, Any]:
        network = kit.linear()
        Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network)).train(1, regression(3))
        return network, kit.weight(network)

    eager, weights = trained()
    assert eager._compiled_call_impl is None
    context.set_context(mode=context.GRAPH_MODE, jit_level="O0", save_graphs=True, save_graphs_path=str(tmp_path))
    compiled, same_weights = trained()
    assert compiled._compiled_call_impl is not None
    np.testing.assert_allclose(same_weights, weights, rtol=1e-6)
    (graph,) = sorted((tmp_path / "rank_0" / "graphs").iterdir())
    assert "torch._C._nn.linear" in graph.read_text(encoding="utf-8")


DETERMINISTIC = """
import {framework}, torch
from misstep.errors import SettingError
from misstep.train import set_context

set_context(deterministic="ON", runtime_num_threads=1)
assert torch.are_deterministic_algorithms_enabled() and torch.get_num_threads() == 1
set_context(deterministic="ON")
try:
    set_context(deterministic="OFF")
except SettingError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("framework", "says"),
    [
        ("torch", ""),
        pytest.param("mindspore", "MindSpore sets determinism once in a process", marks=pytest.mark.mindspore),
    ],
)
def test_determinism_and_threads_are_the_frameworks(framework: str, says: str) -> None:
    command = [sys.executable, "-c", DETERMINISTIC.format(framework=framework)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(says)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"mod": 0}, "did you mean mode"),
        ({"mode": 2}, "GRAPH_MODE .0. or PYNATIVE_MODE .1."),
        ({"mode": "graph"}, "it takes int"),
        ({"mode": True}, "it takes int"),
        ({"device_target": "TPU"}, "'CPU', 'GPU', 'Ascend'"),
        ({"deterministic": "on"}, "'ON', 'OFF'"),
    ],
)
def test_a_wrong_setting_says_what_is_right(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        context.set_context(print_file_path="x.pb", **settings)
    assert context.get_context("print_file_path") == ""  # nothing took effect


def test_every_setting_has_a_default_and_says_what_it_means_on_torch() -> None:
    for meaning in context.MEANINGS:
        assert meaning.on_torch
        assert isinstance(meaning.default, meaning.kinds)


# ── lines of the guides ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.mindspore
def test_the_line_that_sets_pynative_mode_for_debugging() -> None:
    import mindspore as ms

    context.set_context(mode=context.PYNATIVE_MODE)
    assert ms.get_context("mode") == ms.PYNATIVE_MODE


def test_the_line_that_asks_for_an_ascend_says_that_there_is_none_and_changes_nothing() -> None:
    with pytest.raises(SettingError, match="torch sees no Ascend here"):
        context.set_context(mode=context.GRAPH_MODE, device_target="Ascend", device_id=0)
    assert context.get_context("device_target") == "CPU"


SYNCHRONOUS = """
import mindspore as ms
from misstep.train import set_context

set_context(pynative_synchronize=True)
print(ms.ops.add(ms.Tensor([1]), 1))
"""


@pytest.mark.mindspore
def test_the_line_that_waits_for_every_operator_is_taken() -> None:
    done = subprocess.run([sys.executable, "-c", SYNCHRONOUS], capture_output=True, text=True, check=True)
    assert done.stdout == "[2]\n"


# ── seeds ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def draws() -> dict[str, list[float]]:
    """A few numbers of everything that draws."""
    import mindspore as ms

    loader = torch.utils.data.DataLoader(range(8), shuffle=True)  # type: ignore[arg-type]
    data = ms.dataset.NumpySlicesDataset(list(range(8)), shuffle=True)
    return {
        "python": [random.random() for _ in range(3)],
        "numpy": np.random.rand(3).tolist(),
        "torch": torch.rand(3).tolist(),
        "mindspore": ms.ops.rand(3).asnumpy().tolist(),
        "torch loader": [float(batch) for batch in loader],
        "mindspore dataset": [float(row[0]) for row in data.create_tuple_iterator(output_numpy=True)],
    }


@pytest.mark.mindspore
def test_one_seed_fixes_everything_that_draws() -> None:
    set_seed(1)
    first = draws()
    set_seed(1)
    assert draws() == first
    set_seed(2)
    second = draws()
    assert [name for name in first if first[name] == second[name]] == []


WORKERS = """
import numpy as np, random, torch
from misstep.train import seed_worker, set_seed

class Drawing(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.tensor([random.random(), np.random.rand(), torch.rand(1).item()])

if __name__ == "__main__":
    set_seed(3)
    loader = torch.utils.data.DataLoader(Drawing(), num_workers=2, worker_init_fn=seed_worker)
    print([row.flatten().tolist() for row in loader])
"""


def test_workers_of_a_data_loader_draw_the_same_in_every_run(tmp_path: Path) -> None:
    (tmp_path / "workers.py").write_text(WORKERS)
    command = [sys.executable, str(tmp_path / "workers.py")]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert len(set(json.loads(runs[0])[0])) == 3


def test_the_report_says_what_is_not_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    report = set_seed(5)
    assert report.seed == 5
    open_by_name = {source.name: source for source in report.open}
    assert {"torch", "numpy.random", "random"}.isdisjoint(open_by_name)
    assert open_by_name["hash seed"].fix == "PYTHONHASHSEED=0 python train.py"
    assert "set_context(deterministic='ON')" in open_by_name["torch operators"].fix
    assert "not fixed" in str(report)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert "hash seed" not in {source.name for source in determinism_report().open}


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True, "1"])
def test_a_seed_is_a_whole_number_that_numpy_takes(seed: Any) -> None:
    with pytest.raises(TrainError, match="a seed is a whole number"):
        set_seed(seed)
