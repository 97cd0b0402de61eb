"""Dumps that hold statistics or checksums alone: shown, checked and compared by what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from misstep.cli import main
from misstep.compare.layers import diff
from misstep.compare.offline import offline


def msprobe(folder: Path, outputs: dict[str, dict[str, Any]], task: str = "statistics") -> Path:
    rank = folder / "step0" / "rank0"
    rank.mkdir(parents=True)
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3]}
    data = {f"Module.{name}.Linear.forward.0": {"output": [tensor | said]} for name, said in outputs.items()}
    (rank / "dump.json").write_text(json.dumps({"task": task, "level": "L0", "data": data}))
    return folder


def said(top: float, norm: float = 2.0) -> dict[str, Any]:
    return {"Max": top, "Min": -1.0, "Mean": 0.5, "Norm": norm}


def test_a_recorded_inf_is_a_hit_and_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = msprobe(tmp_path / "dump", {"fc1": said(1.0), "fc2": said(float("inf"))})
    assert [str(hit.address.node) for hit in offline(dump).check("overflow")] == ["fc2"]
    assert main(["show", str(dump), "--check"]) == 3
    assert "fc2" in capsys.readouterr().out


def test_statistics_are_compared(tmp_path: Path) -> None:
    one = msprobe(tmp_path / "one", {"fc1": said(1.0), "fc2": said(1.0)})
    same = msprobe(tmp_path / "same", {"fc1": said(1.0), "fc2": said(1.0)})
    other = msprobe(tmp_path / "other", {"fc1": said(1.0), "fc2": said(1.0, norm=2.5)})
    assert diff(one, same)
    found = diff(one, other)
    assert [row.name for row in found.causes] == ["fc2:output"]


def test_checksums_are_compared(tmp_path: Path) -> None:
    one = msprobe(tmp_path / "one", {"fc1": {"md5": "aa"}, "fc2": {"md5": "bb"}}, "md5")
    other = msprobe(tmp_path / "other", {"fc1": {"md5": "aa"}, "fc2": {"md5": "cc"}}, "md5")
    assert [row.verdict for row in diff(one, other).rows] == ["identical", "different"]


HEADER = (
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,L2Norm Value\n"
)


def test_mindspore_statistics_know_gradients_and_optimizer_state(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0" / "Net" / "0" / "0"
    folder.mkdir(parents=True)
    (tmp_path / "rank_0" / "execution_order").mkdir()
    rows = [
        "Conv2D,Default/conv-Conv2D-op0,0,0,1,output,0,24,Float32,\"(2,3)\",inf,-1,2",
        "ReLU,Default/relu-ReLU-op0,0,0,2,output,0,24,Float32,\"(2,3)\",1,0,2",
        "MatMul,Gradients/Default/fc/MatMul-op1,0,0,3,output,0,24,Float32,\"(2,3)\",1,0,2",
        "Parameter,moments.fc.weight,0,0,4,output,0,24,Float32,\"(2,3)\",0,0,0",
        "Parameter,fc.weight,0,0,5,output,0,24,Float32,\"(2,3)\",1,0,2",
    ]  # fmt: skip
    (folder / "statistic.csv").write_text(HEADER + "\n".join(rows) + "\n")
    dump = offline(tmp_path)
    assert {(one.name, one.role) for one in dump.tensors()} == {
        ("Default/conv-Conv2D-op0", "output"),
        ("Default/relu-ReLU-op0", "output"),
        ("Gradients/Default/fc/MatMul-op1", "grad_input"),
        ("moments.fc.weight", "buffer"),
        ("fc.weight", "param"),
    }
    assert [hit.address.node for hit in dump.check("overflow")] == ["Default/conv-Conv2D-op0"]
    assert [hit.address.role for hit in dump.check("gradient_exploding")] == []
    assert not dump.unmatched("gradient_exploding")
    spread = dump.check("activation_range(max_min_gt=0.5)")
    assert [hit.address.node for hit in spread] == ["Default/relu-ReLU-op0"]


def test_a_watchpoint_that_matches_nothing_is_told_with_near_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = msprobe(tmp_path / "dump", {"encoder.fc1": said(1.0)})
    assert main(["check", str(dump), "--watch", "overflow on encoders.fc*:output"]) == 0
    assert "no tensor here fits the watchpoint 'overflow on encoders.fc*:output'" in (err := capsys.readouterr().err)
    assert "encoder.fc1" in err
