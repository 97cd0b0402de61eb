"""zero_grad · forward · backward · step, as MindSpore has it: a function of the loss, value_and_grad, the optimizer.

What stood between becomes the body of that function, indented and otherwise as it was. Names it assigns and the code
after it reads come back beside the loss.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from misstep.diagnosis.lint.source import Source
from misstep.migration.port.structure import Mark
from misstep.migration.scan.page import Page
from misstep.migration.scan.reading import Reading
from misstep.migration.scan.writing import Spell

_MOVES = frozenset({"to", "cuda", "cpu", "float", "long", "half", "view", "reshape", "requires_grad_"})


@dataclass(frozen=True, slots=True)
class _Step:
    """One training step inside a block of statements."""

    body: Sequence[ast.stmt]
    """What computes the loss."""
    loss: ast.Name
    backward: ast.Expr
    clips: Sequence[tuple[ast.Expr, ast.Call]]
    update: ast.Expr
    optimizer: str


def edit_loops(source: Source, reading: Reading, page: Page, spell: Spell, mark: Mark) -> set[ast.AST]:
    """Write every training step anew; returns the calls this takes care of."""
    handled: set[ast.AST] = set()
    for block in _blocks(source.tree):
        for node in block:
            call = _called(node, "backward")
            if call is None:
                continue
            step = _step(block, node, call, reading)
            if step is None:
                mark(node, "torch.Tensor.backward", "outside_loop", "")
                handled.add(call)
                continue
            handled |= _edit(step, source, page, spell)
    return handled


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _called(node: ast.stmt, method: str) -> ast.Call | None:
    """The call of a statement `something.method(...)`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return node.value if node.value.func.attr == method else None
    return None


def _step(block: list[ast.stmt], node: ast.stmt, call: ast.Call, reading: Reading) -> _Step | None:
    assert isinstance(call.func, ast.Attribute)
    at = block.index(node)
    loss = call.func.value
    updates = [one for one in block[at + 1 :] if _called(one, "step") is not None and _is_optimizer(one, reading)]
    begin = next((place for place, one in enumerate(block[:at]) if _computes(one)), None)
    if not isinstance(loss, ast.Name) or not updates or begin is None or call.args or call.keywords:
        return None
    update = updates[0]
    between = block[at + 1 : block.index(update)]
    clips = [(one, found) for one in between if isinstance(one, ast.Expr) and (found := _clip(one)) is not None]
    if any(_called(one, "backward") is not None for one in between):
        return None
    body = [one for one in block[begin:at] if _called(one, "zero_grad") is None]
    if any(isinstance(one, ast.AugAssign | ast.Return | ast.Break | ast.Continue) for one in body):
        return None
    stepped = _called(update, "step")
    assert stepped is not None
    assert isinstance(stepped.func, ast.Attribute)
    assert isinstance(node, ast.Expr)
    assert isinstance(update, ast.Expr)
    return _Step(body, loss, node, clips, update, ast.unparse(stepped.func.value))


def _is_optimizer(node: ast.stmt, reading: Reading) -> bool:
    call = _called(node, "step")
    assert call is not None
    assert isinstance(call.func, ast.Attribute)
    return reading.kind(call.func.value).what == "optimizer" or "opt" in ast.unparse(call.func.value).lower()


def _computes(node: ast.stmt) -> bool:
    """An assignment that runs something, rather than moving a batch to its device."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    calls = [one for one in ast.walk(node.value) if isinstance(one, ast.Call)]
    return any(not (isinstance(one.func, ast.Attribute) and one.func.attr in _MOVES) for one in calls)


def _clip(node: ast.Expr) -> ast.Call | None:
    call = node.value
    return (
        call
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("clip_grad_norm_", "clip_grad_value_"))
        else None
    )


def _edit(step: _Step, source: Source, page: Page, spell: Spell) -> set[ast.AST]:
    first, last = step.body[0], step.body[-1]
    indent = " " * first.col_offset
    start = page.lines[first.lineno - 1]
    end = page.span(step.backward)[1]
    loss = step.loss.id
    aux = [name for name in _assigned(step.body) if name != loss and _read_after(name, step, source)]
    before = [name for name in _assigned(step.body) if _read_first(name, step.body)]
    back = f"({loss}, {', '.join(aux)})" if aux else loss

    def written() -> str:
        stop = page.span(last)[1]
        newline = page.data.find(b"\n", stop)
        tail = newline if newline >= 0 else len(page.data)
        body = textwrap.indent(page.written(start, tail).rstrip("\n"), "    ", lambda line: bool(line.strip()))
        grad = spell("mindspore.value_and_grad")
        lines = [
            f"{indent}def forward_step({', '.join(f'{name}={name}' for name in before)}):",
            body,
            f"{indent}    return {', '.join([loss, *aux])}",
            "",
            f"{indent}{back}, grads = {grad}(forward_step, None, {step.optimizer}.parameters"
            + (", has_aux=True)()" if aux else ")()"),
        ]
        return "\n".join(lines)

    page.change(start, end, written, rank=-1)
    for statement, call in step.clips:
        page.change(*page.span(statement), _clipped(call, page, spell))
    page.change(*page.span(step.update), f"{step.optimizer}(grads)")
    return {step.backward.value, step.update.value, *(call for _, call in step.clips)}


def _clipped(call: ast.Call, page: Page, spell: Spell) -> str:
    limit = next((one.value for one in call.keywords if one.arg in ("max_norm", "clip_value")), None)
    limit = limit or call.args[1]
    text = page.of(limit)
    if ast.unparse(call.func).endswith("clip_grad_norm_"):
        return f"grads = {spell('mindspore.ops.clip_by_global_norm')}(grads, {text})"
    return f"grads = tuple({spell('mindspore.ops.clip_by_value')}(grad, -({text}), {text}) for grad in grads)"


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    return list(
        dict.fromkeys(
            one.id
            for node in body
            for one in ast.walk(node)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        )
    )


def _read_after(name: str, step: _Step, source: Source) -> bool:
    scope = source.scope(step.backward)
    line = step.backward.end_lineno or step.backward.lineno
    return any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) and one.lineno > line
        for one in ast.walk(scope)
    )


def _read_first(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether the body reads a name before it assigns it: then it must come in from outside."""
    for node in body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else node
        if value is not None and any(
            isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) for one in ast.walk(value)
        ):
            return True
        if name in _assigned([node]):
            return False
    return False
