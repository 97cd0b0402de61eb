"""A study file in MindOptimizer's words and in ours, and what is said when it cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from misstep.errors import StudyFileError
from misstep.sentences.text import said
from misstep.tuning.studyfile import check_command, json_schema, parse_study, read_study
from misstep.tuning.studyfile.command import filled
from misstep.tuning.studyfile.expression import Expression

MINDOPTIMIZER = """\
command: sh /home/example/run_alexnet_ascend.sh
summary_base_dir: /home/summaries
tuner:
    name: gp
target:
    group: metric
    name: Accuracy
    goal: maximize
parameters:
    learning_rate:
        bounds: [0.00001, 0.001]
        type: float
    batch_size:
        choice: [32, 64, 128, 256]
        type: int
    momentum:
        source: user_defined
        choice: [0.8, 0.9]
        type: float
"""
"""The example of MindOptimizer's own page, word for word."""

OURS = """\
study: mlp
command: python train.py --lr {lr} [--momentum {momentum}]
parameters:
  lr: {low: 1e-5, high: 1e-1, log: true}
  layers: {low: 1, high: 4}
  optimizer: {choice: [adam, sgd]}
  momentum: {low: 0.0, high: 0.99, when: optimizer == "sgd"}
targets:
  - {name: loss, reduce: mean}
  - {name: accuracy, goal: maximize, pattern: 'accuracy ([0-9.]+)'}
constraints: ["layers * lr <= 0.2"]
trial: {timeout: 10m, retries: 2, backoff: 1s}
trials: 40
timeout: 2h
"""


def test_mindoptimizers_own_example_is_accepted_as_it_is() -> None:
    study = parse_study(MINDOPTIMIZER, "config.yaml")
    assert study.command == ("sh", "/home/example/run_alexnet_ascend.sh")
    assert study.tuner.name == "gp"
    assert [(t.name, t.goal, t.group) for t in study.targets] == [("Accuracy", "maximize", "metric")]
    lr, batch, momentum = study.parameters
    assert (lr.low, lr.high, lr.kind) == (0.00001, 0.001, "float")
    assert batch.choice == (32, 64, 128, 256)
    assert momentum.choice == (0.8, 0.9)


@pytest.mark.parametrize("target", ["target:\n    name:loss", "target:\n    name: loss", "target: loss"])
def test_a_loss_as_mindoptimizers_page_prints_it_is_minimized(target: str) -> None:
    study = parse_study(re.sub(r"target:\n(    .*\n)+", target + "\n", MINDOPTIMIZER, count=1))
    assert [(t.name, t.goal) for t in study.targets] == [("loss", "minimize")]


def test_bounds_of_an_int_leave_out_the_upper_one_and_low_and_high_do_not() -> None:
    text = "command: a\ntarget: loss\nparameters:\n  a: {bounds: [1, 5], type: int}\n  b: {low: 1, high: 5}\n"
    a, b = parse_study(text).parameters
    assert (a.low, a.high) == (1, 4)
    assert (b.low, b.high) == (1, 5)


def test_of_a_key_written_twice_the_last_counts_and_it_is_said() -> None:
    study = parse_study("command: a\ntarget: loss\nparameters:\n  a: {bounds: [1, 5]}\n  a: {bounds: [2, 6]}\n")
    assert study.parameters[0].low == 2
    assert study.notes == ("study.yaml:5: 'a' is written twice; this one counts",)


def test_our_own_words_are_read() -> None:
    study = parse_study(OURS)
    assert study.name == "mlp"
    lr, layers, optimizer, momentum = study.parameters
    assert (lr.low, lr.log) == (1e-5, True)
    assert layers.kind == "int"
    assert optimizer.choice == ("adam", "sgd")
    assert momentum.when is not None
    assert momentum.when({"optimizer": "sgd"}) is True
    assert [t.goal for t in study.targets] == ["minimize", "maximize"]
    assert (study.limits.timeout, study.limits.retries, study.timeout) == (600.0, 2, 7200.0)


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("trials: 40", "trails: 40"), 13, "unknown key 'trails'; did you mean trials"),
        (("high: 1e-1, log", "hihg: 1e-1, log"), 4, "unknown key 'hihg'; did you mean high"),
        (("low: 1e-5, high: 1e-1", "low: 1e-1, high: 1e-5"), 4, "is empty"),
        (("low: 1e-5, high: 1e-1", "bounds: [1, 1]"), 4, "is empty"),
        (("low: 1e-5, high: 1e-1", "bounds: []"), 4, "two numbers"),
        (("low: 1e-5, high: 1e-1, log: true", "low: 0, high: 1.0, log: true"), 4, "log needs a range above 0"),
        (("choice: [adam, sgd]", "choice: []"), 6, "at least one value"),
        (("--lr {lr}", "--lr {rl}"), 2, "{rl} is no parameter; did you mean lr"),
        (('when: optimizer == "sgd"', 'when: optimzer == "sgd"'), 7, "no parameter above 'momentum'"),
        (("layers * lr <= 0.2", "__import__('os')"), 11, "call in it"),
        (("goal: maximize", "goal: maximise"), 10, "one of minimize, maximize"),
        (("([0-9.]+)", "[0-9.]+"), 10, "needs one group"),
        (("timeout: 2h", "timeout: soon"), 14, "write seconds, or 90s"),
        (("retries: 2", "retries: many"), 12, "whole number"),
        (("study: mlp", "study: [mlp"), 2, "expected"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(change: tuple[str, str], line: int, words: str) -> None:
    assert change[0] in OURS
    with pytest.raises(StudyFileError) as caught:
        parse_study(OURS.replace(*change), "my.yaml")
    assert caught.value.line == line, str(caught.value)
    assert str(caught.value).startswith(f"my.yaml:{line}: ")
    assert words in str(caught.value)


def test_a_missing_file_is_told_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(StudyFileError, match="misstep tune --like"):
        read_study(tmp_path / "study.yaml")


def test_a_program_that_is_not_there_is_told_before_any_trial() -> None:
    with pytest.raises(StudyFileError, match=r"study.yaml:2: no program 'pyhton'"):
        check_command(parse_study(OURS.replace("python", "pyhton")))


def test_a_part_in_brackets_is_left_out_while_its_parameter_does_not_exist() -> None:
    study = parse_study(OURS)
    assert filled(study.command, {"lr": 0.1}, optional=study.optional) == ("python", "train.py", "--lr", "0.1")
    full = filled(study.command, {"lr": 0.1, "momentum": 0.5}, optional=study.optional)
    assert full[-2:] == ("--momentum", "0.5")


def test_all_parameters_can_be_written_as_options_or_as_overrides() -> None:
    values = {"lr": 0.1, "width": 3, "nesterov": True, "amsgrad": False}
    assert filled(["a", "{parameters}"], values) == ("a", "--lr", "0.1", "--width", "3", "--nesterov")
    assert filled(["a", "{overrides}"], {"lr": 1e-7, "fast": True}) == ("a", "lr=1e-07", "fast=true")
    assert filled(["a", '{{"lr": {lr}}}'], values) == ("a", '{"lr": 0.1}')


def test_a_constraint_says_by_how_much_it_is_broken() -> None:
    bound = Expression("layers * width <= 100")
    assert bound.violation({"layers": 3, "width": 50}) == 50
    assert bound.violation({"layers": 1, "width": 50}) == -50
    assert Expression("a < 1").violation({"a": 1}) > 0
    assert Expression("a in ['x', 'y'] and not b").violation({"a": "z", "b": False}) == 1


@pytest.mark.parametrize("text", [MINDOPTIMIZER, OURS], ids=["mindoptimizer", "ours"])
def test_editors_get_a_schema_that_accepts_what_we_accept(text: str) -> None:
    plain = yaml.safe_load(text.replace("1e-5", "0.00001").replace("1e-1", "0.1"))
    jsonschema.validate(plain, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**plain, "trails": 3}, json_schema())


def test_every_mistake_is_told_in_chinese_with_the_same_line() -> None:
    with pytest.raises(StudyFileError) as caught:
        parse_study(OURS.replace("trials: 40", "trails: 40"), "my.yaml")
    assert said(str(caught.value), "zh") == "my.yaml:13: 未知的键 'trails'；是否指 trials、trial 或 constraints？"
    with pytest.raises(StudyFileError) as caught:
        parse_study(OURS.replace("choice: [adam, sgd]", "choice: []"), "my.yaml")
    assert said(str(caught.value), "zh") == "my.yaml:6: choice 应为至少含一个值的列表"
