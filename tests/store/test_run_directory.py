"""What one process writes, another reads: the same facts, alive or dead."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import small_run
from small_run import INFO, begin, child_environment, record, rows, train, values

from misstep.core.address import Address
from misstep.core.finding import Finding, TensorFact, Verdict
from misstep.core.graph import Edge, Node, Source, TensorKey
from misstep.core.run import Step
from misstep.core.stats import DTYPE_CODES, DTYPE_NAMES
from misstep.core.watching.watch import Watchpoint
from misstep.errors import AddressError, RunError, RunNotFound, RunTooNew, TensorUnavailable
from misstep.store.pack import numpy_dtype
from misstep.store.reading.reader import Run, open_run
from misstep.store.writing.writer import RunWriter


def test_a_finished_run_tells_all_that_was_written(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "try"))
    assert (run.name, run.info, run.state, run.ranks, run.damage) == ("try", INFO, "finished", (0,), [])
    assert run.steps() == [Step(n, loss=1 / n, time=1000.0 + n) for n in range(1, 6)]
    assert run.last_step == run.step(5) == Step(5, loss=0.2, time=1005.0)
    assert run.step(6) is None
    assert [hit.address for hit in run.hits()] == [Address("encoder.fc", step=n, rank=0) for n in range(1, 6)]
    assert run.verdict == Verdict(5, 0, "forward", "nan", "encoder.fc")
    assert run.watchpoints == [Watchpoint(1, "overflow")]
    assert [event.kind for event in run.events()] == ["start", "watchpoint", *["hit", "step"] * 5, "verdict", "end"]
    assert [event.facts["exit"] for event in run.events("end")] == [0]


def test_the_graph_comes_back_as_it_ran(tmp_path: Path) -> None:
    graph = open_run(record(tmp_path / "try")).graph()
    assert graph.nodes[1] == Node(1, "encoder.norm", "module", "Linear", source=Source("train.py", 2), order=1)
    assert graph.tensors == [TensorKey(0, "output"), TensorKey(1, "output"), TensorKey(2, "output")]
    assert (graph.shapes, graph.edges) == ([(2, 3, 4)], [Edge(0, 1)])


def test_a_node_that_learns_its_source_line_is_told_again(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    better = Node(2, "decoder.fc", "module", "Linear", source=Source("net.py", 87, "y = log(y)"))
    writer.add_node(better)
    writer.flush()
    assert open_run(tmp_path / "try").graph().nodes[2] == better


def test_the_history_of_a_tensor_is_an_array_over_the_steps(tmp_path: Path) -> None:
    history = open_run(record(tmp_path / "try")).history("encoder.norm:output")
    assert history["step"].tolist() == [1, 2, 3, 4, 5]
    assert history["mean"].tolist() == [1.1, 2.1, 3.1, 4.1, 5.1]


def test_statistics_are_found_by_pattern_and_steps(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "try"))
    found = run.stats("encoder.*:output@2:3")
    assert [(str(address), stats.mean) for address, stats in found] == [
        ("encoder.fc:output@2#0", 2.0),
        ("encoder.norm:output@2#0", 2.1),
        ("encoder.fc:output@3#0", 3.0),
        ("encoder.norm:output@3#0", 3.1),
    ]
    assert found[0][1].shape == (2, 3, 4)
    assert found[0][1].dtype == "float32"
    assert [address.step for address, _ in run.stats("decoder.fc", steps=range(1, 6, 2))] == [1, 3, 5]
    assert run.stats("decoder.fc", steps=4) == run.stats("decoder.fc@4")
    assert [address.node for address, _ in run.step_rows(3)] == list(small_run.NODES)


def test_a_tensor_without_a_step_is_the_latest_kept(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "try"))
    assert (run.tensor("encoder.fc:output@2") == values(2)).all()
    assert (run.tensor("encoder.fc:output") == values(5)).all()
    assert [stored.address.step for stored in run.tensors("encoder.*")] == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="read-only"):
        run.tensor("encoder.fc:output")[0, 0] = 1


@pytest.mark.parametrize("dtype", [name for name in DTYPE_NAMES if name != "unknown"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_dtype_survives_the_pack(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = (
        np.arange(6).reshape(2, 3).astype(numpy_dtype(dtype)) if shape == (2, 3) else np.ones(shape, numpy_dtype(dtype))
    )
    writer = RunWriter(tmp_path / "try", 0, INFO)
    assert writer.tensor(Address("fc", step=1), array, dtype, shape)
    assert writer.tensor(Address("fc", step=2), array.tobytes(), dtype, shape)
    writer.end("finished", 0)
    run = open_run(tmp_path / "try")
    for step in (1, 2):
        kept = run.tensor(f"fc:output@{step}")
        assert (kept.dtype, kept.shape, kept.tobytes()) == (array.dtype, shape, array.tobytes())


def test_a_tensor_that_does_not_lie_in_one_piece_is_kept_right(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T.astype(ml_dtypes.bfloat16)[::2]
    writer = RunWriter(tmp_path / "try", 0, INFO)
    writer.tensor(Address("fc", step=1), array, "bfloat16", (2, 3))
    assert open_run(tmp_path / "try").tensor("fc:output@1").tolist() == array.tolist()


def test_a_tensor_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "try", 0, INFO)
    with pytest.raises(ValueError, match="has 24 bytes, but 12 were given"):
        writer.tensor(Address("fc"), np.zeros(3, np.float32), "float32", (2, 3))


def test_numbers_that_are_not_finite_come_back_and_the_json_stays_plain(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    step = Step(1, loss=math.inf, losses=(-math.inf, 2.0), gradient_norm=math.nan, time=5.0)
    writer.step(step, *rows(1))
    writer.finding(Finding("explodes", "the loss explodes", detail={"loss": math.inf}))
    (read,) = open_run(tmp_path / "try").steps()
    assert (read.loss, read.losses) == (math.inf, (-math.inf, 2.0))
    assert read.gradient_norm is not None
    assert math.isnan(read.gradient_norm)
    assert open_run(tmp_path / "try").findings[0].detail == {"loss": math.inf}

    def refuse(word: str) -> float:
        raise AssertionError(f"bare {word} in the journal")

    for line in (tmp_path / "try/rank-0/journal.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)


def test_a_later_verdict_on_the_same_step_replaces_the_first(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    coarse = Verdict(7, 0, "forward", "nan", "encoder.fc", precision="module")
    exact = replace(
        coarse, node="encoder.fc/log", precision="operator", inputs=(TensorFact("encoder.fc/log:input@7", "fine"),)
    )
    writer.verdict(coarse)
    writer.verdict(exact)
    writer.verdict(replace(coarse, step=9))
    run = open_run(tmp_path / "try")
    assert (run.verdict, len(run.verdicts)) == (exact, 2)


def test_watchpoints_in_force_follow_their_changes(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    one, two = Watchpoint(1, "overflow"), Watchpoint(2, "max > 1")
    for action, watchpoint in (("add", one), ("add", two), ("update", replace(two, enabled=False)), ("delete", one)):
        writer.watchpoint(action, watchpoint)  # type: ignore[arg-type]
    assert open_run(tmp_path / "try").watchpoints == [replace(two, enabled=False)]


def test_a_reader_follows_a_live_run(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    run = open_run(tmp_path / "try")
    assert [event.kind for event in run.poll()] == ["start"]
    assert run.state == "starting"
    train(writer, 1, 3)
    assert [event.kind for event in run.poll()] == ["hit", "step"] * 3
    assert (run.state, run.history("decoder.fc")["step"].tolist()) == ("running", [1, 2, 3])
    writer.event("state", state="paused", at="decoder.fc:output")
    assert [event.kind for event in run.poll()] == ["state"]
    assert run.state == "paused"
    writer.event("state", state="running")
    train(writer, 4, 4)
    run.refresh()
    assert (run.state, run.last_step.number if run.last_step else None) == ("running", 4)
    assert (run.tensor("encoder.fc:output") == values(4)).all()
    assert len(run.poll()) == 3
    assert run.poll() == []
    writer.end("stopped", 1)
    assert run.refresh().state == "stopped"


def test_a_reader_sees_whole_steps_while_another_process_writes(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, small_run as r\n"
        "w = r.begin(pathlib.Path(sys.argv[1])); r.train(w, 1, 2000); w.end('finished', 0)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "try")], env=child_environment()) as process:
        while not (tmp_path / "try/rank-0/journal.jsonl").exists():
            assert process.poll() is None
        run = open_run(tmp_path / "try")
        while run.state in ("starting", "running"):
            told = len(run.refresh().steps())
            if not told:
                continue
            for node in small_run.NODES:
                assert run.history(f"{node}:output")["step"].tolist()[:told] == list(range(1, told + 1))
            assert (run.tensor(f"encoder.fc:output@{told}") == values(told)).all()
        assert process.wait() == 0
    run.refresh()
    assert (run.state, len(run.steps()), run.verify()) == ("finished", 2000, [])


def test_a_run_whose_process_is_gone_without_an_end_is_lost(tmp_path: Path) -> None:
    script = "import sys, os, pathlib, small_run as r; r.train(r.begin(pathlib.Path(sys.argv[1])), 1, 3); os._exit(9)"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "try")], env=child_environment(), check=False)
    run = open_run(tmp_path / "try")
    assert (run.state, len(run.steps())) == ("lost", 3)


def test_a_failed_rank_makes_a_failed_run(tmp_path: Path) -> None:
    for rank, reason in ((0, "finished"), (1, "failed")):
        writer = begin(tmp_path / "try", rank)
        train(writer, 1, 2)
        writer.end(reason, rank)  # type: ignore[arg-type]
    run = open_run(tmp_path / "try")
    assert (run.state, run.ranks) == ("failed", (0, 1))
    assert [hit.address.rank for hit in run.hits()] == [0, 1, 0, 1]
    assert [hit.address.rank for hit in run.hits(rank=1)] == [1, 1]
    assert {address.rank for address, _ in run.stats("decoder.fc")} == {0, 1}
    assert {address.rank for address, _ in run.stats("decoder.fc#1")} == {1}
    with pytest.raises(RunError, match="has no rank 7; it has 0, 1"):
        run.steps(7)


def test_two_writers_never_share_a_rank(tmp_path: Path) -> None:
    first, second, third = (begin(tmp_path / "try") for _ in range(3))
    train(first, 1, 2)
    train(second, 1, 3)
    assert (first.rank, second.rank, third.rank) == (0, 1, 2)
    run = open_run(tmp_path / "try")
    assert [len(run.steps(rank)) for rank in run.ranks] == [2, 3, 0]
    assert [event.facts["wanted_rank"] for event in run.events("start")] == [0, 0, 0]


def test_a_forked_child_does_not_write(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    train(writer, 1, 1)
    before = {path.name: path.stat().st_size for path in (tmp_path / "try/rank-0").iterdir()}
    writer.hit(open_run(tmp_path / "try").hits()[0])
    child = os.fork()
    if child == 0:
        train(writer, 2, 3)
        writer.event("note", text="from the child")
        writer.add_node(Node(3, "child", "module", "Linear"))
        writer.end("failed", 1)
        os._exit(0)
    os.waitpid(child, 0)
    assert {path.name: path.stat().st_size for path in (tmp_path / "try/rank-0").iterdir()} == before
    train(writer, 2, 2)
    assert [event.kind for event in open_run(tmp_path / "try").events()] == [
        "start",
        "hit",
        "step",
        "hit",
        "hit",
        "step",
    ]


def test_fewer_steps_are_kept_when_the_statistics_file_is_large(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try", stats_mb=0.002)  # 16 rows: 5 steps of 3
    for step in range(1, 41):
        writer.step(Step(step, loss=1.0), *rows(step), keep=step == 23)
    writer.end("finished", 0)
    run = open_run(tmp_path / "try")
    assert len(run.steps()) == 40
    kept = run.history("encoder.fc")["step"].tolist()
    assert kept[:6] == [1, 2, 3, 4, 5, 6]
    assert 23 in kept
    levels = [event.facts["interval"] for event in run.events("level")]
    assert levels == [2**power for power in range(1, len(levels) + 1)]
    assert len(levels) >= 2
    assert all(step % 2 == 0 for step in kept if step > 6 and step != 23)


def test_nothing_more_is_dumped_when_the_pack_is_full(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try", pack_mb=0.0005)
    kept = [writer.tensor(Address("encoder.fc", step=step), values(step), "float32", (2, 3)) for step in range(12)]
    assert kept == [True] * 7 + [False] * 5
    assert writer.lost == {"tensor": 5}
    writer.end("finished", 0)
    run = open_run(tmp_path / "try")
    assert (len(run.tensors()), run.lost, len(run.events("warning"))) == (7, {"tensor": 5}, 1)


def test_blocks_reserved_behind_the_pack_are_given_back_and_never_seen(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    ones = np.ones(1 << 18, np.float32)
    for step in (1, 2, 3):
        writer.tensor(Address("encoder.fc", step=step), ones, "float32", ones.shape)
    pack = tmp_path / "try/rank-0/tensors.pack"
    assert pack.stat().st_size == 64 + 3 * ones.nbytes
    writer.end("finished", 0)
    ended = pack.stat()
    assert (ended.st_size, ended.st_blocks * 512 - ended.st_size < 65536) == (64 + 3 * ones.nbytes, True)
    assert open_run(tmp_path / "try").verify() == []


def test_an_unknown_address_names_the_nearest_nodes(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "try"))
    with pytest.raises(AddressError, match=r"no node 'encodr\.fc' in try; did you mean encoder\.fc"):
        run.history("encodr.fc:output")
    with pytest.raises(AddressError, match=r"recorded there: encoder\.fc:output"):
        run.stats("encoder.fc:grad")
    with pytest.raises(AddressError, match=r"did you mean encoder\.fc"):
        run.tensor("encodr.fc:output@1")


def test_a_tensor_that_was_not_kept_says_how_to_get_it(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    train(writer, 1, 2)
    with pytest.raises(TensorUnavailable, match=r"misstep dump try 'decoder\.fc:output@1'") as caught:
        open_run(tmp_path / "try").tensor("decoder.fc:output@1")
    assert (caught.value.address, caught.value.reason) == ("decoder.fc:output@1", "not_captured")
    with pytest.raises(TensorUnavailable, match="kept at step 1, 2"):
        open_run(tmp_path / "try").tensor("encoder.fc:output@9")
    writer.end("finished", 0)
    with pytest.raises(TensorUnavailable, match="misstep replay try@1"):
        open_run(tmp_path / "try").tensor("decoder.fc:output@1")


def test_a_run_of_a_later_format_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = record(tmp_path / "try") / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(RunTooNew, match=r"format 99, this one reads up to 2\):  pip install -U misstep"):
        open_run(tmp_path / "try")


def test_a_statistics_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    path = record(tmp_path / "try") / "rank-0/stats.bin"
    data = bytearray(path.read_bytes())
    data[8] = 2
    path.write_bytes(data)
    with pytest.raises(RunTooNew, match="statistics version 2"):
        open_run(tmp_path / "try")


def test_an_open_run_opens_as_itself(tmp_path: Path) -> None:
    run = open_run(record(tmp_path / "try"))
    assert open_run(run) is run
    assert isinstance(open_run(str(tmp_path / "try")), Run)
    with pytest.raises(RunNotFound):
        open_run(tmp_path / "nothing", base=tmp_path)


def test_rows_say_their_dtype(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    head, summary = rows(1)
    head["dtype"] = DTYPE_CODES["bfloat16"]
    writer.step(Step(1), head, summary)
    assert [stats.dtype for _, stats in open_run(tmp_path / "try").stats("*")] == ["bfloat16"] * 3
