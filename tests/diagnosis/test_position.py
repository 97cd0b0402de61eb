"""How far a step had come, from the modules it had entered."""

from __future__ import annotations

from misstep.core.graph import Graph, Node
from misstep.diagnosis.crash.position import reached

STEP: tuple[tuple[str, str, str], ...] = (
    ("Net", "module", "forward"),
    ("Net.weight", "parameter", "forward"),
    ("fc1", "module", "forward"),
    ("fc1/addmm", "operator", "forward"),
    ("relu", "operator", "forward"),
    ("fc2", "module", "forward"),
    ("fc2/addmm", "operator", "forward"),
    ("script/loss", "operator", "loss"),
    ("fc2/mm", "operator", "backward"),
    ("fc1/mm", "operator", "backward"),
    ("optimizer", "optimizer", "optimizer"),
)


def graph() -> Graph:
    made = Graph()
    for index, (name, kind, phase) in enumerate(STEP):
        made.add_node(Node(index, name, kind, "", phase, order=index + 1))  # type: ignore[arg-type]
    return made


def stretch(phase: str, *entered: str) -> list[str] | None:
    found = reached(graph(), phase, entered)
    return None if found is None else [one.node for one in found.nodes if one.here]


def test_forward_ended_between_the_module_entered_last_and_the_one_that_would_come_next() -> None:
    found = reached(graph(), "forward", ("fc1", "Net"))
    assert found is not None
    assert (found.first, found.last, found.total) == (2, 4, 10)
    assert [one.node for one in found.nodes if one.here] == ["fc1", "fc1/addmm", "relu"]
    assert [one.node for one in found.nodes if one.done] == ["Net"]
    assert found.phases == (("forward", 6), ("loss", 7), ("backward", 9), ("optimizer", 10))


def test_after_the_last_module_the_stretch_ends_with_forward() -> None:
    assert stretch("forward", "fc2", "fc1", "Net") == ["fc2", "fc2/addmm"]


def test_backward_and_the_update_are_known_only_as_a_whole() -> None:
    assert stretch("backward", "fc2") == ["fc2/mm", "fc1/mm"]
    assert stretch("optimizer", "fc2") == ["optimizer"]


def test_what_the_recorder_cannot_know_is_not_guessed() -> None:
    assert stretch("between", "fc2") is None
    assert stretch("forward", "never_recorded") is None
    assert reached(Graph(), "forward", ("fc1",)) is None
