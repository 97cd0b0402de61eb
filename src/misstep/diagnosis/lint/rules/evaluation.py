"""Training mode, evaluation mode, and the data that goes into each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from misstep.diagnosis.lint.roles import is_loader, is_network
from misstep.diagnosis.lint.rule import Place, rule
from misstep.diagnosis.lint.source import Loop, Source, keyword, method, receiver
from misstep.sentences.advice import lint as texts

_MODAL = ("Dropout", "BatchNorm", "SyncBatchNorm", "InstanceNorm", "DropPath")
_TRAINERS = ("fit", "train_step", "training_step")


@rule("eval-not-undone", "error", texts.EVAL_STAYS, texts.EVAL_STAYS_FIX)
def eval_not_undone(source: Source) -> Iterator[Place]:
    """Evaluation mode set inside the epochs and never undone there: from the second epoch on, training runs in it."""
    seen: set[ast.AST] = set()
    for loop in source.nodes:
        if not isinstance(loop, Loop):
            continue
        reached = _reached(source, loop)
        computes = any(method(node) == "backward" for node in reached)
        offs = [node for node in reached if _sets_mode(node) is False]
        ons = [node for node in reached if _sets_mode(node) is True]
        if computes and offs and not ons and not _restores(reached) and offs[0] not in seen:
            owners = {ast.unparse(receiver(node)) for node in offs if isinstance(node, ast.Call)}
            if _trains_the_same(source, loop, reached, owners):
                seen.add(offs[0])
                assert isinstance(offs[0], ast.Call)
                yield offs[0], {"name": sorted(owners)[0]}


@rule("eval-missing", "warning", texts.EVAL_MISSING, texts.EVAL_MISSING_FIX)
def eval_missing(source: Source) -> Iterator[Place]:
    """Evaluation under no_grad with dropout or batch normalisation still in training mode."""
    if any(_sets_mode(node) is False for node in source.nodes) or not _has_modal(source):
        return
    if any(method(call) in ("fit", "validate", "test") for call in source.calls):
        return
    for node in source.nodes:
        if not isinstance(node, ast.With) or not any(_no_grad(source, item.context_expr) for item in node.items):
            continue
        for loop in ast.walk(node):
            if isinstance(loop, ast.For) and is_loader(source, loop.iter):
                forward = [
                    call for call in ast.walk(loop) if isinstance(call, ast.Call) and is_network(source, call.func)
                ]
                if forward:
                    yield forward[0], {}
                    break


@rule("training-under-no-grad", "error", texts.UNDER_NO_GRAD, texts.UNDER_NO_GRAD_FIX)
def training_under_no_grad(source: Source) -> Iterator[Place]:
    for call in source.calls:
        if method(call) != "backward" or source.dotted(call.func).startswith("torch.autograd"):
            continue
        for parent in source.ancestors(call):
            if isinstance(parent, ast.FunctionDef):
                if any(_no_grad(source, one) for one in parent.decorator_list):
                    yield call, {}
                break
            if isinstance(parent, ast.With):
                contexts = [
                    source.dotted(item.context_expr.func)
                    for item in parent.items
                    if isinstance(item.context_expr, ast.Call)
                ]
                if any(name == "torch.enable_grad" for name in contexts):
                    break
                if any(_no_grad(source, item.context_expr) for item in parent.items):
                    yield call, {}
                    break


@rule("train-data-not-shuffled", "warning", texts.NOT_SHUFFLED, texts.NOT_SHUFFLED_FIX)
def train_data_not_shuffled(source: Source) -> Iterator[Place]:
    for call in source.calls:
        if source.called(call) != "torch.utils.data.DataLoader" or any(one.arg is None for one in call.keywords):
            continue
        parent = source.parents.get(call)
        name = ast.unparse(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
        if "train" not in name.lower() or not call.args or len(call.args) > 2:
            continue
        shuffle = keyword(call, "shuffle")
        other = any(keyword(call, one) is not None for one in ("sampler", "batch_sampler"))
        ordered = any(word in ast.unparse(call.args[0]).lower() for word in ("iter", "stream", "series", "window"))
        if shuffle is None and not other and not ordered:
            yield call, {"name": name}


@rule("dropout-keep-prob", "warning", texts.KEEP_PROB, texts.KEEP_PROB_FIX)
def dropout_keep_prob(source: Source) -> Iterator[Place]:
    """MindSpore 1.x counted what is kept, 2.x what is dropped."""
    for call in source.calls:
        if source.called(call) == "mindspore.nn.Dropout" and keyword(call, "keep_prob") is not None:
            yield call, {}


def _sets_mode(node: ast.AST) -> bool | None:
    """True when a call sets training mode, False for evaluation mode, None for anything else."""
    if not isinstance(node, ast.Call):
        return None
    name = method(node)
    argument = node.args[0] if node.args else None
    off = isinstance(argument, ast.Constant) and argument.value is False
    if name == "eval" and not node.args and not node.keywords:
        return False
    if name in ("train", "set_train"):
        return not off
    return None


def _restores(reached: list[ast.AST]) -> bool:
    """True when the mode is remembered: `was = model.training`."""
    return any(isinstance(node, ast.Attribute) and node.attr == "training" for node in reached)


def _reached(source: Source, loop: ast.AST) -> list[ast.AST]:
    """Everything that runs in a loop: its body, and the bodies of the project's functions it calls."""
    found: list[ast.AST] = []
    pending: list[ast.AST] = [loop]
    known: set[ast.AST] = {loop}
    while pending:
        for node in ast.walk(pending.pop()):
            found.append(node)
            name = method(node) or (source.dotted(node.func) if isinstance(node, ast.Call) else "")
            for function in source.functions.get(name, ()) if name and name not in _TRAINERS else ():
                if function not in known:
                    known.add(function)
                    pending.append(function)
    return found


def _trains_the_same(source: Source, loop: ast.AST, reached: list[ast.AST], owners: set[str]) -> bool:
    """True unless the network in evaluation mode is plainly another than the one trained (a teacher, a metric)."""
    held = {
        ast.unparse(receiver(node))
        for call in source.calls
        if source.called(call).startswith(("torch.optim.", "mindspore."))
        for node in ast.walk(call)
        if isinstance(node, ast.Call) and method(node) in ("parameters", "trainable_params", "named_parameters")
    }
    if held:
        return bool(owners & held) or bool(held & {"self"})
    return True


def _no_grad(source: Source, node: ast.expr) -> bool:
    name = source.dotted(node.func) if isinstance(node, ast.Call) else source.dotted(node)
    return name in ("torch.no_grad", "torch.inference_mode")


def _has_modal(source: Source) -> bool:
    for call in source.calls:
        name = source.called(call)
        if name.startswith(("torch.nn.", "mindspore.nn.")) and name.rpartition(".")[2].startswith(_MODAL):
            return True
    return False
