"""A compiler that is wrong is caught at its first wrong operator, and a right one is never called wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx, nn
from torch.nn import functional as F

from misstep.adapters.pytorch.compiled.lines import node_line
from misstep.adapters.pytorch.compiled.operators_apart import Backend, Outcome, check, copied


def captured(function: Callable[..., Any], *inputs: Any) -> tuple[fx.GraphModule, list[Any]]:
    """The graph Dynamo makes of a function, and what it is called with."""
    found: list[tuple[fx.GraphModule, list[Any]]] = []

    def backend(graph: fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
        kept = fx.GraphModule(graph, copy.deepcopy(graph.graph))

        def run(*given: Any) -> Any:
            found.append((kept, copied(given)))
            return graph(*given)

        return run

    torch._dynamo.reset()
    torch.compile(function, backend=backend)(*inputs)
    torch._dynamo.reset()
    (only,) = found
    return only


def right(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """A compiler that computes what it is given."""
    return graph


def replacing(wrong: Any, instead: Any) -> Backend:
    """A compiler that takes one function for another."""

    def backend(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        mine = fx.GraphModule(graph, copy.deepcopy(graph.graph))
        for node in mine.graph.find_nodes(op="call_function", target=wrong):
            node.target = instead
        mine.recompile()
        return mine

    return backend


class BadGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        result = torch.tanh(x)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (result,) = ctx.saved_tensors
        return gradient * (1 - result)  # not squared


def badly(x: torch.Tensor) -> torch.Tensor:
    return BadGradient.apply(x)


def only_alone(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """A compiler that is wrong only where it may fuse: while a value between is not asked for."""
    relus = graph.graph.find_nodes(op="call_function", target=torch.relu)
    fused = relus and all(user.target is not torch.clone for user in relus[0].users)
    return replacing(torch.relu, torch.abs)(graph, inputs) if fused else graph


def chain(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    hidden = torch.relu(x @ weight)
    return torch.tanh(torch.log1p(hidden)).sum(dim=1)


def outcome(backend: Backend, function: Callable[..., Any] = chain) -> Outcome:
    torch.manual_seed(0)
    graph, inputs = captured(function, torch.randn(6, 5), torch.randn(5, 4, requires_grad=True))
    return check(graph, inputs, backend)


@pytest.mark.parametrize(
    ("backend", "operator", "backward"),
    [
        (replacing(torch.relu, torch.abs), "relu", False),
        (replacing(torch.log1p, torch.log), "log1p", False),
        (replacing(torch.log1p, lambda x: torch.log1p(x) * (1 + 3e-4)), "log1p", False),
        (replacing(torch.tanh, badly), "tanh", True),
        (only_alone, "relu", False),
    ],
)
def test_the_first_wrong_operator_is_named_with_its_line(backend: Backend, operator: str, backward: bool) -> None:
    found = outcome(backend)
    assert found.worst is not None
    assert (found.worst.operator, found.worst.wrong, found.backward) == (operator, True, backward)
    line = node_line(found.worst.node)
    assert line is not None
    assert line[0] == __file__


def test_a_right_compiler_is_not_called_wrong() -> None:
    found = outcome(right)
    assert found.worst is not None
    assert not found.worst.wrong
    assert found.compared >= 5


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attend = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.conv, self.batch_norm = nn.Conv1d(8, 8, 3, padding=1), nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        x = x + self.attend(y, y, y, need_weights=False)[0]
        x = self.batch_norm(self.conv(x.transpose(1, 2))).transpose(1, 2)
        x = x.clone()
        x[:, 0] += 1  # written in place
        halves = F.gelu(x).half().chunk(2, dim=-1)
        return F.dropout(halves[0].float() * halves[1].float(), 0.5).softmax(-1)


def test_random_numbers_writes_in_place_and_narrow_types_are_no_errors_of_the_compiler() -> None:
    torch.manual_seed(0)
    graph, inputs = captured(Block(), torch.randn(4, 6, 8))
    from torch._dynamo.backends.debugging import aot_eager

    found = check(graph, inputs, aot_eager)
    assert found.worst is not None
    assert not found.worst.wrong, found.worst
    assert found.random >= 1


def test_a_formula_that_loses_its_digits_is_called_unstable_and_not_miscompiled() -> None:
    def cancels(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        big = x @ weight + 1e7
        return (big - 1e7).sum()

    torch.manual_seed(0)
    graph, inputs = captured(cancels, torch.randn(6, 5), torch.randn(5, 4))
    found = check(graph, inputs, right)
    assert found.worst is not None
    assert not found.worst.wrong


def test_checking_draws_nothing_from_the_programs_random_numbers() -> None:
    graph, inputs = captured(Block(), torch.randn(4, 6, 8))
    before = torch.get_rng_state()
    check(graph, inputs, right)
    assert torch.equal(torch.get_rng_state(), before)
