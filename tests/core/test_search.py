"""The search box narrows a graph down; what it cannot read, it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misstep.core.address import Pattern
from misstep.core.graph import Edge, Graph, Node, Source, TensorKey
from misstep.core.search import Surroundings, search
from misstep.core.watching.watch import Watchpoint
from misstep.errors import AddressError


def a_graph() -> Graph:
    graph = Graph()
    rows = [
        ("encoder.0.attn", "module", "Attention", "forward", Source("train.py", 12, "x = self.attn(x)")),
        ("encoder.0.attn/softmax", "operator", "aten.softmax", "forward", Source("model.py", 87, "softmax(x)")),
        ("encoder.1.fc", "module", "Linear", "forward", Source("model.py", 9)),
        ("encoder.1.fc.weight", "parameter", "Parameter", "forward", None),
        ("decoder", "module", "Linear", "backward", None),
    ]
    for index, (name, kind, type_, phase, source) in enumerate(rows):
        graph.add_node(Node(index, name, kind, type_, phase, source, index + 1))  # type: ignore[arg-type]
    graph.tensors += [TensorKey(1, "output"), TensorKey(3, "param"), TensorKey(3, "grad")]
    graph.edges.append(Edge(0, 2, dtype="float16", shape=(8, 12, 512)))
    return graph


AROUND = Surroundings(
    watchpoints=(Watchpoint(2, "nan", on=(Pattern.parse("encoder.1*"),)), Watchpoint(3, "nan", nodes=("decoder",))),
    hits={"encoder.0.attn/softmax": {2}},
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("attn softmax", [1]),
        ("ATTN", [0, 1]),
        (r"/^encoder\.\d\.fc$/", [2]),
        ("op:softmax", [1]),
        ("type:Linear", [2, 4]),
        ("type:Linear -name:decoder", [2]),
        ("dtype:f16", [0, 2]),
        ("shape:8,12,*", [0, 2]),
        ("shape:...,512", [0, 2]),
        ("shape:8", []),
        ("file:model.py:87", [1]),
        ("file:model.py", [1, 2]),
        ("hit:", [1]),
        ("hit:3", []),
        ("watched:", [2, 3, 4]),
        ("watched:3", [4]),
        ("category:gradient", [3]),
        ("category:activation", [1]),
        ("phase:backward", [4]),
        ("kind:operator", [1]),
        ("scope:encoder.0", [0, 1]),
        ("encoder.*.fc", [2]),
        ("-encoder", [4]),
        ("", [0, 1, 2, 3, 4]),
    ],
)
def test_every_word_of_a_query_narrows(query: str, found: list[int]):
    assert [node.index for node in search(a_graph(), query, AROUND)] == found


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("color:red", "cannot search by 'color'"),
        ("category:weights", "did you mean weight"),
        ("shape:big", "it looks like shape:8,12"),
        ("/(a+)+b/", "nests repeats"),
        ("/[/", "cannot read the regular expression"),
        ("hit:one", "try hit: or hit:2"),
    ],
)
def test_what_cannot_be_read_is_told(query: str, told: str):
    with pytest.raises(AddressError, match=told.replace("(", r"\(")):
        search(a_graph(), query)


@given(st.text(max_size=60))
def test_no_query_breaks_the_search(query: str):
    try:
        search(a_graph(), query, AROUND)
    except AddressError:
        pass
