"""The training loop: what is called, what is not, and in which order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from misstep.diagnosis.lint.roles import is_loader, is_optimizer, is_scaler, is_scheduler
from misstep.diagnosis.lint.rule import Place, rule
from misstep.diagnosis.lint.source import Loop, Source, method, number, receiver
from misstep.sentences.advice import lint as texts

_PER_EPOCH = ("StepLR", "MultiStepLR", "ExponentialLR", "ReduceLROnPlateau")
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm")


class Batch:
    """The calls of one loop body, in the order in which they run; conditions and contexts are looked through."""

    def __init__(self, source: Source, loop: Loop) -> None:
        self.source, self.loop = source, loop
        self.calls = [call for statement in _flat(loop.body) for call in _calls(statement)]

    def find(self, name: str) -> list[int]:
        return [index for index, call in enumerate(self.calls) if method(call) == name]

    @property
    def backwards(self) -> list[int]:
        return self.find("backward")

    @property
    def updates(self) -> list[int]:
        """Where optimizers step, by themselves or through a gradient scaler."""
        source = self.source
        return [
            index
            for index in self.find("step")
            if is_optimizer(source, receiver(self.calls[index])) or is_scaler(source, receiver(self.calls[index]))
        ]

    def stepped(self, index: int) -> str:
        """The optimizer that call steps, as the file writes it."""
        call = self.calls[index]
        if is_scaler(self.source, receiver(call)) and call.args:
            return ast.unparse(call.args[0])
        return ast.unparse(receiver(call))


def batches(source: Source) -> Iterator[Batch]:
    """The innermost loops that compute gradients."""
    for node in source.nodes:
        if isinstance(node, Loop):
            batch = Batch(source, node)
            inner = [one for one in ast.walk(node) if isinstance(one, Loop) and one is not node]
            held = any(method(call) == "backward" for loop in inner for call in ast.walk(loop))
            if batch.backwards and not held:
                yield batch


@rule("zero-grad-missing", "error", texts.ZERO_GRAD_MISSING, texts.ZERO_GRAD_MISSING_FIX)
def zero_grad_missing(source: Source) -> Iterator[Place]:
    if _clears_by_hand(source):
        return
    cleared = {ast.unparse(receiver(call)) for call in source.calls if method(call) == "zero_grad"}
    for batch in batches(source):
        stepped = {batch.stepped(index): index for index in batch.updates}
        known = cleared <= set(stepped)  # else a model, a list of optimizers or another function clears
        for name, index in stepped.items():
            closure = batch.calls[index].args and not is_scaler(source, receiver(batch.calls[index]))
            if known and name not in cleared and not closure and not _in_collection(cleared, name):
                yield batch.calls[index], {"name": name}


@rule("zero-grad-misplaced", "error", texts.ZERO_GRAD_MISPLACED, texts.ZERO_GRAD_MISPLACED_FIX)
def zero_grad_misplaced(source: Source) -> Iterator[Place]:
    for batch in batches(source):
        for update in batch.updates:
            before = [index for index in batch.backwards if index < update]
            name = batch.stepped(update)
            for index in batch.find("zero_grad"):
                same = ast.unparse(receiver(batch.calls[index])) == name
                if before and same and before[-1] < index < update and not _apart(batch, index, update):
                    yield batch.calls[index], {"name": name}


@rule("step-missing", "error", texts.STEP_MISSING, texts.STEP_MISSING_FIX)
def step_missing(source: Source) -> Iterator[Place]:
    """Gradients are computed, an optimizer exists, and nothing in the file steps anything."""
    if any(method(call) in ("step", "fit", "minimize", "apply_gradients", "optimizer_step") for call in source.calls):
        return
    made = [
        call
        for call in source.calls
        if source.called(call).startswith("torch.optim.") and ".lr_scheduler." not in source.called(call)
    ]
    if not made or _returns(source, made):
        return
    for batch in batches(source):
        yield batch.calls[batch.backwards[0]], {}
        return


@rule("backward-missing", "error", texts.BACKWARD_MISSING, texts.BACKWARD_MISSING_FIX)
def backward_missing(source: Source) -> Iterator[Place]:
    computes = ("backward", "grad", "value_and_grad", "manual_backward", "training_step", "vjp", "jvp")
    if any(method(call) in computes or source.called(call).rpartition(".")[2] in computes for call in source.calls):
        return
    if any(isinstance(node, ast.Attribute) and node.attr in ("grad", "backward") for node in source.nodes):
        return
    for call in source.calls:
        if method(call) != "step" or call.args or call.keywords:
            continue
        made = source.called(source.value_of(receiver(call)))
        if made.startswith("torch.optim.") and ".lr_scheduler." not in made and source.loops_around(call):
            yield call, {"name": ast.unparse(receiver(call))}


@rule("scheduler-before-optimizer", "warning", texts.SCHEDULER_FIRST, texts.SCHEDULER_FIRST_FIX)
def scheduler_before_optimizer(source: Source) -> Iterator[Place]:
    for node in source.nodes:
        if not isinstance(node, Loop):
            continue
        batch = Batch(source, node)
        updates = batch.updates
        ahead = [index for index in batch.find("step") if is_scheduler(source, receiver(batch.calls[index]))]
        if updates and ahead and ahead[0] < updates[0] and not _apart(batch, ahead[0], updates[0]):
            yield batch.calls[ahead[0]], {}


@rule("scheduler-per-batch", "warning", texts.SCHEDULER_PER_BATCH, texts.SCHEDULER_PER_BATCH_FIX)
def scheduler_per_batch(source: Source) -> Iterator[Place]:
    for batch in batches(source):
        if not source.loops_around(batch.loop) or not isinstance(batch.loop, ast.For):
            continue
        for index in batch.find("step"):
            call = batch.calls[index]
            kind = source.called(source.value_of(receiver(call))).rpartition(".")[2]
            direct = source.loops_around(call)[0] is batch.loop
            conditional = any(isinstance(one, ast.If) for one in _until(source, call, batch.loop))
            if kind in _PER_EPOCH and direct and not conditional and is_loader(source, batch.loop.iter):
                yield call, {"name": kind}


@rule("clip-misplaced", "error", texts.CLIP_MISPLACED, texts.CLIP_MISPLACED_FIX)
def clip_misplaced(source: Source) -> Iterator[Place]:
    """Clipping after the update changes nothing; before backward it clips the gradients of the step before."""
    for batch in batches(source):
        clips = [index for index, call in enumerate(batch.calls) if source.called(call) in _CLIPS]
        updates, backwards = batch.updates, batch.backwards
        for clip in clips:
            useful = any(back < clip < update for back in backwards for update in updates if back < update)
            if updates and backwards and not useful:
                yield batch.calls[clip], {}


@rule("clip-before-unscale", "error", texts.CLIP_SCALED, texts.CLIP_SCALED_FIX)
def clip_before_unscale(source: Source) -> Iterator[Place]:
    if any(method(call) == "unscale_" for call in source.calls):
        return
    for batch in batches(source):
        scaled = [call for call in batch.calls if method(call) == "scale" and is_scaler(source, receiver(call))]
        for call in batch.calls:
            if scaled and source.called(call) in _CLIPS:
                yield call, {"scaler": ast.unparse(receiver(scaled[0]))}


@rule("scaler-incomplete", "error", texts.SCALER_INCOMPLETE, texts.SCALER_INCOMPLETE_FIX)
def scaler_incomplete(source: Source) -> Iterator[Place]:
    used: dict[str, dict[str, ast.Call]] = {}
    for call in source.calls:
        if method(call) in ("scale", "step", "update") and is_scaler(source, receiver(call)):
            used.setdefault(ast.unparse(receiver(call)), {})[method(call)] = call
    for name, calls in used.items():
        missing = [verb for verb in ("scale", "step", "update") if verb not in calls]
        made = source.called(source.value_of(receiver(next(iter(calls.values())))))
        if len(missing) == 1 and made:  # a scaler made elsewhere may be completed elsewhere
            yield min(calls.values(), key=lambda call: call.lineno), {"name": name, "missing": missing[0]}


@rule("accumulation-not-averaged", "warning", texts.NOT_AVERAGED, texts.NOT_AVERAGED_FIX)
def accumulation_not_averaged(source: Source) -> Iterator[Place]:
    """`if (i + 1) % k == 0: optimizer.step()` sums k gradients: the step is k times as long."""
    for batch in batches(source):
        for update in batch.updates:
            every = _every(source, batch.calls[update], batch.loop)
            if every is None:
                continue
            size = number(source.value_of(every))
            divides = any(
                (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult))
                or (isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult))
                for node in ast.walk(batch.loop)
            )
            if not divides and (size is None or size > 1) and not _logs_only(batch, update):
                yield batch.calls[update], {"every": ast.unparse(every)}


@rule("loss-keeps-graph", "warning", texts.LOSS_KEEPS_GRAPH, texts.LOSS_KEEPS_GRAPH_FIX)
def loss_keeps_graph(source: Source) -> Iterator[Place]:
    """`total += loss` keeps every step's graph alive: memory grows until the process dies."""
    for batch in batches(source):
        owners = {ast.unparse(receiver(batch.calls[index])) for index in batch.backwards}
        for node in ast.walk(batch.loop):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                target, value = ast.unparse(node.target), ast.unparse(node.value)
                reset = any(
                    isinstance(one, ast.Assign) and target in {ast.unparse(each) for each in one.targets}
                    for one in ast.walk(batch.loop)
                )
                if value in owners and target not in owners and not reset:
                    yield node, {"target": target, "loss": value}
            elif method(node) == "append" and isinstance(node, ast.Call) and node.args:
                kept = ast.unparse(node.args[0])
                if kept in owners:
                    yield node, {"target": ast.unparse(receiver(node)), "loss": kept}


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt | ast.expr]:
    for statement in body:
        if isinstance(statement, ast.With | ast.AsyncWith):
            yield from (item.context_expr for item in statement.items)
            yield from _flat(statement.body)
        elif isinstance(statement, ast.If):
            yield statement.test
            yield from _flat(statement.body)
            yield from _flat(statement.orelse)
        elif isinstance(statement, ast.Try | Loop):
            yield from _flat(statement.body)
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement


def _calls(node: ast.AST) -> list[ast.Call]:
    """The calls of a statement, inner ones first, as Python runs them."""
    found: list[ast.Call] = []
    for child in ast.iter_child_nodes(node):
        found += _calls(child)
    if isinstance(node, ast.Call):
        found.append(node)
    return found


def _until(source: Source, node: ast.AST, end: ast.AST) -> Iterator[ast.AST]:
    for parent in source.ancestors(node):
        if parent is end:
            return
        yield parent


def _apart(batch: Batch, first: int, second: int) -> bool:
    """True when one of two calls stands in a condition or inner loop that the other is not in."""
    kinds = ast.If | ast.Try | Loop
    around = [
        {one for one in _until(batch.source, batch.calls[index], batch.loop) if isinstance(one, kinds)}
        for index in (first, second)
    ]
    return around[0] != around[1]


def _every(source: Source, call: ast.Call, loop: Loop) -> ast.expr | None:
    """k of the condition `... % k == 0` that a call stands under, inside the loop."""
    for parent in _until(source, call, loop):
        if isinstance(parent, ast.If):
            for node in ast.walk(parent.test):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                    return node.right
    return None


def _logs_only(batch: Batch, update: int) -> bool:
    """True when backward stands under the same condition: then nothing is accumulated."""
    return all(not _apart(batch, back, update) for back in batch.backwards)


def _clears_by_hand(source: Source) -> bool:
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("zero_", "clear_grad", "optimizer_zero_grad"):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == "zero_grad":
            return True  # meant to: call-without-parentheses names it
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Attribute) and target.attr == "grad" for target in node.targets
        ):
            return True
    return False


def _in_collection(cleared: set[str], name: str) -> bool:
    """True when optimizers stand in a list or dictionary, where names do not tell which is which."""
    return "[" in name or any("[" in one for one in cleared)


def _returns(source: Source, made: list[ast.Call]) -> bool:
    """True when an optimizer leaves this file: as a result, or handed to a function that may step it."""
    for call in made:
        parent = source.parents.get(call)
        if isinstance(parent, ast.Return | ast.Call | ast.keyword):
            return True
        names = {ast.unparse(target) for target in parent.targets} if isinstance(parent, ast.Assign) else set()
        handed = [
            argument
            for other in source.calls
            if ".lr_scheduler." not in source.called(other)
            for argument in (*other.args, *(one.value for one in other.keywords))
        ]
        returned = [node.value for node in source.nodes if isinstance(node, ast.Return) and node.value is not None]
        if any(ast.unparse(value) in names for value in (*handed, *returned)):
            return True
    return False
