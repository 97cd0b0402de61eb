"""Which tensor is which: by name, by spelling, by place, by the user's word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from misstep.compare.align import align, common_order
from misstep.compare.layers import diff
from misstep.compare.mapfile import NameMap, map_of, read_map, write_map
from misstep.compare.names import canonical, canonical_type
from misstep.errors import CompareError
from misstep.store.foreign.source import ArraySource, Entry


def pairs(left: list[Entry], right: list[Entry], names: NameMap | None = None) -> list[tuple[str, str, str]]:
    return [(one.left.name, one.right.name, one.how) for one in align(left, right, names=names).pairs]


def params(*names: str, shape: tuple[int, ...] = (4,)) -> list[Entry]:
    return [Entry(name, "param", shape=shape, order=at) for at, name in enumerate(names)]


def node(name: str, kind: str, shape: tuple[int, ...], order: int) -> Entry:
    return Entry(name, "output", node_type=kind, shape=shape, order=order)


@pytest.mark.parametrize(
    ("torch", "mindspore"),
    [
        ("bn.weight", "bn.gamma"),
        ("bn.bias", "bn.beta"),
        ("bn.running_mean", "bn.moving_mean"),
        ("bn.running_var", "bn.moving_variance"),
        ("tokens.weight", "tokens.embedding_table"),
        ("module.fc.weight", "fc.weight"),
        ("fc.weight", "network.backbone.fc.weight"),
        ("_orig_mod.fc.weight", "fc.weight"),
        ("model.encoder.0.fc.weight", "encoder.0.fc.weight"),
        ("state_dict.fc.weight", "backbone.fc.weight"),
    ],
)
def test_a_rule_pairs_two_spellings(torch: str, mindspore: str) -> None:
    assert pairs(params(torch), params(mindspore)) == [(torch, mindspore, "rule")]


def test_a_scope_only_one_side_has_is_found_from_the_names() -> None:
    names = ["fc1.weight", "fc1.bias", "fc2.weight"]
    wrapped = [f"my_wrapper.inner.{name}" for name in names]
    assert pairs(params(*names), params(*wrapped)) == [(a, b, "rule") for a, b in zip(names, wrapped)]


def test_types_of_both_frameworks_meet() -> None:
    for left, right in (
        ("BatchNorm2d", "BatchNorm"),
        ("Linear", "Dense"),
        ("nn.Conv2d", "Conv2D"),
        ("aten.mm.default", "MatMul"),
    ):
        assert canonical_type(left) == canonical_type(right)


def test_a_scope_of_mindspore_becomes_a_path() -> None:
    name = "Default/network-WithLossCell/_backbone-Net/layer1-SequentialCell/0-Block/fc1-Dense/MatMul-op0"
    assert canonical(name) == "layer1.0.fc1/MatMul-op0"


def test_differently_named_networks_are_paired_by_order_type_and_shape() -> None:
    left = [
        node("a.conv", "Conv2d", (2, 8), 0),
        node("a.bn", "BatchNorm2d", (2, 8), 1),
        node("a.fc", "Linear", (2, 3), 2),
    ]
    right = [
        node("x1", "Conv2D", (2, 8), 0),
        node("extra", "Identity", (2, 8), 1),
        node("x2", "BatchNorm", (2, 8), 2),
        node("x3", "Dense", (2, 3), 3),
    ]
    found = align(left, right)
    assert [(one.left.name, one.right.name, one.how) for one in found.pairs] == [
        ("a.conv", "x1", "order"),
        ("a.bn", "x2", "order"),
        ("a.fc", "x3", "order"),
    ]
    assert [entry.name for entry in found.only_right] == ["extra"]


def test_parameters_follow_the_module_that_was_paired_by_order() -> None:
    left = [node("bn1", "BatchNorm2d", (2, 8), 0), Entry("bn1.weight", "param", shape=(8,), order=1)]
    right = [
        node("norm_a", "BatchNorm", (2, 8), 0),
        Entry("norm_a.beta", "param", shape=(8,), order=1),
        Entry("norm_a.gamma", "param", shape=(8,), order=2),
    ]
    assert pairs(left, right) == [("bn1", "norm_a", "order"), ("bn1.weight", "norm_a.gamma", "order")]


def test_a_bias_is_never_taken_for_a_running_mean() -> None:
    assert pairs(params("a.bias"), params("b.running_mean")) == []


def test_calls_of_one_module_are_paired_one_by_one() -> None:
    left = [Entry("fc", "output", shape=(2,), order=at, call=at + 1) for at in range(3)]
    assert [(one.left.call, one.right.call) for one in align(left, left).pairs] == [(1, 1), (2, 2), (3, 3)]


def test_the_longest_common_order_is_the_longest() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = (rng.integers(0, 4, rng.integers(0, 9)).tolist() for _ in range(2))
        found = common_order(a, b)
        assert all(a[i] == b[j] for i, j in found)
        assert found == sorted(found)
        assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found) == _longest(a, b)


def _longest(a: list[int], b: list[int]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        row = [0, *(0 for _ in b)] if not row else _next(row, x, b)
    return row[-1]


def _next(row: list[int], x: int, b: list[int]) -> list[int]:
    new = [0]
    for j, y in enumerate(b):
        new.append(row[j] + 1 if x == y else max(row[j + 1], new[-1]))
    return new


def test_ten_thousand_nodes_are_aligned_by_order() -> None:
    kinds = ("Linear", "GELU", "LayerNorm", "Add")
    left = [node(f"l{at}", kinds[at % 4], (8, at % 7), at) for at in range(10_000)]
    right = [node(f"r{at}", kinds[at % 4], (8, at % 7), at) for at in range(10_000) if at % 100]
    # No stopwatch is needed: a table of 10⁸ cells in Python would not end within the time limit of a test.
    found = align(left, right)
    assert (len(found.pairs), len(found.only_left), len(found.only_right)) == (9_900, 100, 0)
    assert all(one.left.name[1:] == one.right.name[1:] for one in found.pairs[50:100])


def test_the_map_file_has_the_first_word(tmp_path: Path) -> None:
    text = """
[names]
"layer1" = "stage.one"
"head.*" = "top.*.last"
[rules]
'^enc\\.(\\d+)\\.' = 'encoder.layer\\1.'
[layouts]
"head.w" = "transpose"
[ignore]
left = ["*.num_batches_tracked"]
"""
    (tmp_path / "map.toml").write_text(text)
    names = read_map(tmp_path / "map.toml")
    left = params("layer1.a.weight", "head.w", "enc.3.bias", "bn.num_batches_tracked")
    right = params("stage.one.a.weight", "top.w.last", "encoder.layer3.bias")
    found = align(left, right, names=names)
    assert [(one.left.name, one.right.name, one.how, one.layout) for one in found.pairs] == [
        ("layer1.a.weight", "stage.one.a.weight", "map", ""),
        ("head.w", "top.w.last", "map", "transpose"),
        ("enc.3.bias", "encoder.layer3.bias", "map", ""),
    ]
    assert found.only_left == []


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_written_map_reads_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map.{suffix}"
    write_map(path, [('a "quoted".b', "x.y")], only_left=["left.over"])
    assert read_map(path) == NameMap(names={'a "quoted".b': "x.y"})


def test_a_misspelt_section_of_a_map_is_named() -> None:
    with pytest.raises(CompareError, match=r"unknown section 'nmaes'.*names"):
        map_of({"nmaes": {}})
    with pytest.raises(CompareError, match="no regular expression"):
        map_of({"rules": {"(": "x"}})


def test_a_conv1d_with_one_more_axis_is_the_same_weight() -> None:
    weight = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    found = diff({"conv.weight": weight}, {"conv.weight": weight[:, :, None]})
    assert found
    assert (found.rows[0].verdict, found.rows[0].layout) == ("identical", "reshape")


def test_a_keras_kernel_lies_transposed() -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert diff({"fc.weight": weight}, {"fc.kernel": weight.T})


def test_an_order_of_axes_from_the_map_is_followed() -> None:
    image = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    given = {"names": {"x": "y"}, "layouts": {"x": "0 3 1 2"}}
    assert diff({"x": image}, {"y": image.transpose(0, 2, 3, 1)}, names=given)


def test_nothing_in_common_is_an_error_that_shows_both_sides() -> None:
    with pytest.raises(CompareError, match=r"no tensor in common.*left holds a.*right holds b"):
        diff(ArraySource({"a": np.ones(2)}, label="left"), ArraySource({"b": np.ones(3)}, label="right"))


def test_a_single_step_is_paired_with_itself_where_the_other_side_kept_more() -> None:
    kept = [Entry("fc", "output", shape=(4,), order=step, step=step) for step in (1, 2, 3)]
    assert [(one.left.step, one.right.step) for one in align(kept[1:2], kept).pairs] == [(2, 2)]
    assert [(one.left.step, one.right.step) for one in align(kept, kept[:1]).pairs] == [(1, 1)]
    alone = [Entry("fc", "output", shape=(4,), order=0, step=9)]
    assert [(one.left.step, one.right.step) for one in align(alone, kept[:1]).pairs] == [(9, 1)]
