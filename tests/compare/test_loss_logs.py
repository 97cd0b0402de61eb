"""Loss curves as trainings leave them, and two of them side by side whatever their steps are called."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from misstep.compare.loss_logs import LossCurve, read_loss_log
from misstep.compare.losses import compare_losses
from misstep.errors import CompareError
from misstep.store.foreign import protobuf as pb
from misstep.store.foreign.eventfile import masked


def tfevents(folder: Path, points: list[tuple[int, str, float]], *, time: int = 1_700_000_000) -> Path:
    """An event file as TensorBoard writes it."""
    import struct

    path = folder / f"events.out.tfevents.{time}.host.1.0"
    with open(path, "wb") as out:
        for step, tag, value in points:
            number = pb.encode_varint(2 << 3 | pb.FIXED32) + struct.pack("<f", value)
            summary = pb.encode_bytes(1, pb.encode_bytes(1, tag.encode()) + number)
            time_field = pb.encode_varint(1 << 3 | pb.FIXED64) + struct.pack("<d", float(time))
            event = time_field + pb.encode_number(2, step) + pb.encode_bytes(5, summary)
            length = struct.pack("<Q", len(event))
            out.write(length + struct.pack("<I", masked(length)) + event + struct.pack("<I", masked(event)))
    return path


@pytest.mark.parametrize(
    ("name", "text", "losses"),
    [
        ("hf.log", "{'loss': 2.5, 'epoch': 0.1}\n{'eval_loss': 9.0}\n{'loss': nan, 'epoch': 0.2}\n"
         "{'train_runtime': 3.0, 'train_loss': 5.0}\n", {1: 2.5, 2: math.nan}),
        ("log.jsonl", '{"step": 0, "train/loss": 2.5}\n{"step": 5, "train/loss": 1.5, "val/loss": 7}\n',
         {0: 2.5, 5: 1.5}),
        ("log.csv", "epoch,step,loss,lr\n1,1,2.5,0.1\n1,2,1.5,0.1\n", {1: 2.5, 2: 1.5}),
        ("trainer_state.json", '{"log_history": [{"loss": 2.5, "step": 10}, {"eval_loss": 3, "step": 10}]}', {10: 2.5}),
        ("epochs.log", "epoch 1 step 1 loss: 3\nepoch 1 step 2 loss: 2\nepoch 2 step 1 loss: 1\n", {1: 3, 2: 2, 3: 1}),
        ("val.log", "step 1 val_loss: 9 loss: 3\nstep 2 val_loss: 8 loss: 2\n", {1: 3, 2: 2}),
        ("own/scalars.jsonl", '{"step": 1, "tag": "loss", "value": 2.5}\n{"step": 1, "tag": "lr", "value": 0.1}\n',
         {1: 2.5}),
    ],
)  # fmt: skip
def test_every_kind_of_log_gives_its_losses(tmp_path: Path, name: str, text: str, losses: dict[int, float]) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert str(read_loss_log(path)) == str({step: float(value) for step, value in losses.items()})


def test_tensorboard_gives_the_tag_that_is_asked_for(tmp_path: Path) -> None:
    tfevents(tmp_path, [(0, "train/loss", 2.5), (0, "eval/loss", 9.0), (1, "train/loss", 1.5)])
    assert read_loss_log(tmp_path) == {0: 2.5, 1: 1.5}
    assert read_loss_log(tmp_path, tag="eval/loss") == {0: 9.0}
    with pytest.raises(CompareError, match="found: train/loss, eval/loss"):
        read_loss_log(tmp_path, tag="perplexity")


def test_counting_from_0_and_from_1_is_one_curve() -> None:
    assert compare_losses({0: 2.0, 1: 1.0}, {1: 2.0, 2: 1.0})
    assert compare_losses({0: 2.0, 1: 1.0}, {1: 2.0, 2: 1.5}).first_step == 2


def test_a_log_without_numbers_goes_by_place() -> None:
    found = compare_losses(LossCurve({1: 3.0, 2: 2.0}, numbered=False), {10: 3.0, 20: 2.5})
    assert (found.steps, found.first_step) == ((10, 20), 20)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(CompareError, match="no such file"):
        compare_losses(tmp_path / "nowhere.log", [1.0])


def test_several_trainings_in_one_folder_show_the_newest_and_say_so(tmp_path: Path) -> None:
    from misstep.store.foreign.mindspore.summary import read_summary

    for time, host in ((100, "host_MS"), (101, "host_lineage"), (900, "host_MS")):
        (tmp_path / f"events.out.events.summary.{time}.0.{host}").write_bytes(b"")
    found = read_summary(tmp_path)
    assert found.started == 900
    assert "holds 2 trainings" in found.damage[0]


def test_json_lines_are_written_as_they_are_read(tmp_path: Path) -> None:
    lines = [{"global_step": step, "loss": 1 / step} for step in range(1, 4)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert compare_losses(tmp_path / "a.jsonl", [1 / step for step in range(1, 4)])
