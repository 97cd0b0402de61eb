"""The graph as it ran: names, scopes, tensors and edges."""

from __future__ import annotations

import pytest

from misstep.core.address import Address
from misstep.core.graph import Edge, Graph, Node, Source, TensorKey, scope_of


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("encoder.0/log", "encoder.0"),
        ("encoder.0", "encoder"),
        ("encoder", ""),
        ("/log", ""),
        ("a/b.c", "a/b"),
        ("", ""),
    ],
)
def test_the_scope_is_the_name_up_to_the_last_mark(name: str, scope: str) -> None:
    assert scope_of(name) == scope


def graph() -> Graph:
    made = Graph()
    made.add_node(Node(0, "encoder", "module", "Encoder", order=3))
    made.add_node(Node(1, "encoder.1", "module", "Linear", order=2))
    made.add_node(Node(2, "encoder.0", "module", "Linear", order=1))
    made.add_node(Node(3, "encoder.0/log", "operator", "aten.log", order=1))
    made.tensors.append(TensorKey(2, "output", 1, 2))
    made.edges += [Edge(2, 1), Edge(1, 0, source_slot=1)]
    return made


def test_children_come_in_execution_order_and_not_deeper() -> None:
    assert [node.name for node in graph().children("encoder")] == ["encoder.0", "encoder.1"]
    assert [node.name for node in graph().children("")] == ["encoder"]
    assert [node.name for node in graph().children("encoder.0")] == ["encoder.0/log"]


def test_nodes_are_found_by_name_and_learn_their_source_later() -> None:
    made = graph()
    line = Source("train.py", 87, "y = torch.log(y)")
    made.add_node(Node(3, "encoder.0/log", "operator", "aten.log", order=1, source=line))

    found = made.node("encoder.0/log")

    assert found is not None
    assert found.source == line
    assert str(line) == "train.py:87 `y = torch.log(y)`"
    assert made.node("decoder") is None
    assert list(made.names()) == ["encoder", "encoder.1", "encoder.0", "encoder.0/log"]


def test_a_node_that_got_another_name_is_not_found_by_the_old_one() -> None:
    made = graph()
    made.add_node(Node(1, "encoder.one", "module", "Linear", order=2))

    assert made.node("encoder.1") is None
    assert made.node("encoder.one") == made.nodes[1]


def test_a_tensor_index_is_an_address() -> None:
    assert graph().address(0, step=7, rank=1) == Address("encoder.0", "output", 1, 7, 1, 2)


def test_edges_are_producers_and_consumers() -> None:
    assert graph().producers(1) == [Edge(2, 1)]
    assert graph().consumers(1) == [Edge(1, 0, source_slot=1)]


def test_a_root_operator_is_a_child_of_the_outermost_scope() -> None:
    made = Graph()
    made.add_node(Node(0, "log", "operator", "aten.log"))

    assert [node.name for node in made.children("")] == ["log"]
