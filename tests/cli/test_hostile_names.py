"""Names that would command a terminal, in everything a run can hold: every command shows them and obeys none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from misstep.cli import main
from misstep.cli.render.shown import shown
from misstep.core.address import Address
from misstep.core.finding import Finding, Verdict
from misstep.core.graph import Node, Source, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.store.checkpoint import write_safetensors
from misstep.store.writing.writer import RunWriter

EVIL = "fc\x1b]0;owned\x07\x1b[2J\u202e\u2066\x00\x9b31m[red][/]"
COMMANDING = "\x1b\x07\x00\x9b\u202e\u2066"


def hostile_run(folder: Path) -> Path:
    info = RunInfo(name=EVIL, command=("python", EVIL), started=1.7e9, versions={EVIL: EVIL}, host=EVIL)
    writer = RunWriter(folder / "run", 0, info)
    writer.add_node(Node(0, EVIL, "module", EVIL, source=Source(EVIL, 3, EVIL)))
    writer.add_tensor(TensorKey(0, "output"))
    address = Address(EVIL, step=1, rank=0)
    writer.watchpoint("add", Watchpoint(id=1, condition="overflow", name=EVIL))
    writer.hit(Hit(1, 1, address, reason=EVIL))
    writer.verdict(Verdict(1, 0, "forward", "nan", EVIL, op=EVIL, source=Source(EVIL, 3, EVIL), note=EVIL))
    writer.finding(Finding(EVIL, "error", EVIL, evidence=(EVIL,), advice=EVIL, command=EVIL))
    writer.event("warning", text=EVIL)
    writer.tensor(address, np.full((2,), np.nan, np.float32), "float32", (2,))
    writer.step(Step(1, loss=float("nan"), optimizer=EVIL), np.zeros(1, HEAD), np.zeros(1, SUMMARY))
    writer.end("failed", 1, text=EVIL)
    return folder / "run"


@pytest.mark.parametrize(
    "command",
    [["ls"], ["show"], ["show", "--json"], ["show", "*"], ["check"], ["hits"], ["export"], ["no such"]],
    ids=str,
)
def test_no_command_lets_a_name_command_the_terminal(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = hostile_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = [command[0], "--dir", str(tmp_path)] if command == ["ls"] else [command[0], str(run), *command[1:]]
    if command[1:] == ["*"]:
        given = ["show", str(run), "*"]
    main(given)
    said = capsys.readouterr()
    text = said.out + said.err
    assert text.strip()
    assert not [mark for mark in COMMANDING if mark in text]
    if "--json" in command:
        assert json.loads(said.out)


def test_names_in_a_checkpoint_and_in_errors_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_safetensors(tmp_path / "m.safetensors", {EVIL: np.ones(2, np.float32)}, metadata={"note": EVIL})
    main(["show", str(tmp_path / "m.safetensors")])
    main(["show", f"nothing{EVIL}"])
    main([EVIL])
    said = capsys.readouterr()
    assert not [mark for mark in COMMANDING if mark in said.out + said.err]
    assert "\\x1b" in said.out


def test_what_is_shown_is_what_was_there() -> None:
    assert shown("plain 中文\tand\nlines") == "plain 中文\tand\nlines"
    assert shown("\x1b[31m\x85\u202e") == "\\x1b[31m\\u0085\\u202e"
