"""The page's one answer: the verdict of the earliest birth over all ranks, else the exception, else nothing."""

from __future__ import annotations

from pathlib import Path

from misstep.core.finding import TensorFact, Verdict
from misstep.core.graph import Node, Source
from misstep.core.run import RunInfo
from misstep.hub.answers.verdict import run_verdict
from misstep.hub.listing.folder import RunFolder
from misstep.store.reading.reader import Run
from misstep.store.writing.writer import RunWriter


def writer(folder: Path, rank: int = 0) -> RunWriter:
    return RunWriter(folder / "try", rank, RunInfo(name="try", command=("python",), started=1.0, world_size=2))


def born(step: int, rank: int, *, phase: str = "forward") -> Verdict:
    return Verdict(
        step=step,
        rank=rank,
        phase=phase,  # type: ignore[arg-type]
        kind="nan",
        node="blocks.3/log",
        op="aten.log",
        source=Source("gpt.py", 29, "h = torch.log(h)"),
        inputs=(TensorFact("blocks.3/add:output@19", "-11.5 … 4.1"),),
        outputs=(TensorFact("blocks.3/log:output@19", "8,270 NaN of 16,384", nan=8270, count=16384),),
        precision="operator",
    )


def test_of_two_ranks_the_earlier_birth_is_the_answer_everywhere(tmp_path: Path) -> None:
    spread, guilty = writer(tmp_path), writer(tmp_path, 1)
    spread.verdict(born(19, 0, phase="backward"))
    guilty.verdict(born(19, 1))
    spread.end("finished", 0)
    guilty.end("finished", 0)
    view = run_verdict(Run(tmp_path / "try"), "en")
    assert view is not None
    assert (view.rank, view.step, view.phase, view.slot) == (1, 19, "forward", "output")
    assert view.evidence[:2] == ("output: 8,270 NaN of 16,384", "input blocks.3/add: -11.5 … 4.1")
    assert view.source is not None
    assert view.source.line == 29
    (brief,) = RunFolder(tmp_path).briefs()
    assert (brief.state, brief.bad) == ("finished", "nan")
    assert brief.found == "NaN born in blocks.3/log, step 19, rank 1"
    assert brief.found_zh == "逻辑卡 1 的 blocks.3/log 在轮次 19 产生 NaN"


def test_without_a_bad_value_the_exception_is_the_answer_and_a_healthy_run_has_none(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.add_node(Node(0, "embed", "module", "Linear", order=1))
    one.flush()
    assert run_verdict(Run(tmp_path / "try"), "en") is None
    one.event("exception", type="RuntimeError", text="shapes differ\nmore", node="embed", step=4)
    one.end("failed", 1)
    view = run_verdict(Run(tmp_path / "try"), "zh")
    assert view is not None
    assert (view.kind, view.node, view.step, view.title) == ("exception", "embed", 4, "RuntimeError: shapes differ")


def test_a_run_recorded_anew_under_its_old_name_is_the_new_one(tmp_path: Path) -> None:
    old = writer(tmp_path)
    old.verdict(born(19, 0))
    old.end("finished", 0)
    folder = RunFolder(tmp_path)
    assert folder.open("try").verdict is not None
    (tmp_path / "try").rename(tmp_path.parent / "deleted")
    writer(tmp_path).end("finished", 0)
    assert folder.open("try").verdict is None
