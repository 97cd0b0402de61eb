"""What is minimised: activations applied twice, losses without a gradient, arguments in the wrong order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from misstep.diagnosis.lint.roles import loss_kind, tail_of
from misstep.diagnosis.lint.rule import Place, rule
from misstep.diagnosis.lint.source import Source, keyword, method, receiver
from misstep.sentences.advice import lint as texts

_TARGETS = ("target", "targets", "label", "labels", "y_true", "gt", "ground_truth")
_OUTPUTS = (
    "output",
    "outputs",
    "pred",
    "preds",
    "prediction",
    "predictions",
    "logits",
    "logit",
    "y_pred",
    "y_hat",
    "scores",
)
_NO_GRADIENT = (
    "argmax",
    "argmin",
    "round",
    "sign",
    "floor",
    "ceil",
    "item",
    "numpy",
    "detach",
    "tolist",
    "eq",
    "asnumpy",
)
_INPUT = ("input", "logits", "inputs")


def losses(source: Source) -> Iterator[tuple[ast.Call, str, ast.expr]]:
    """Every place where a loss is computed: the call, which loss, and its first argument."""
    for call in source.calls:
        kind = loss_kind(source, call)
        first = next((found for name in _INPUT if (found := keyword(call, name)) is not None), None)
        first = first or (call.args[0] if call.args else None)
        if kind and first is not None and not isinstance(first, ast.Starred):
            yield call, kind, first


@rule("softmax-twice", "error", texts.SOFTMAX_TWICE, texts.SOFTMAX_TWICE_FIX)
def softmax_twice(source: Source) -> Iterator[Place]:
    for call, kind, first in losses(source):
        if kind == "cross_entropy" and (tail := tail_of(source, first)) in ("softmax", "sigmoid"):
            yield call, {"activation": tail}


@rule("sigmoid-twice", "error", texts.SIGMOID_TWICE, texts.SIGMOID_TWICE_FIX)
def sigmoid_twice(source: Source) -> Iterator[Place]:
    for call, kind, first in losses(source):
        if kind == "bce_with_logits" and (tail := tail_of(source, first)) in ("softmax", "sigmoid"):
            yield call, {"activation": tail}


@rule("logits-in-probability-loss", "error", texts.NO_SIGMOID, texts.NO_SIGMOID_FIX)
def logits_in_probability_loss(source: Source) -> Iterator[Place]:
    for call, kind, first in losses(source):
        if kind == "bce" and (tail := tail_of(source, first)) in ("linear", "relu"):
            yield call, {"tail": tail}


@rule("nll-without-log", "error", texts.NLL_WITHOUT_LOG, texts.NLL_WITHOUT_LOG_FIX)
def nll_without_log(source: Source) -> Iterator[Place]:
    for call, kind, first in losses(source):
        if kind == "nll" and (tail := tail_of(source, first)) in ("softmax", "linear", "relu", "sigmoid"):
            yield call, {"tail": tail}


@rule("relu-before-cross-entropy", "warning", texts.RELU_LOGITS, texts.RELU_LOGITS_FIX)
def relu_before_cross_entropy(source: Source) -> Iterator[Place]:
    for call, kind, first in losses(source):
        if kind in ("cross_entropy", "bce_with_logits") and tail_of(source, first) == "relu":
            yield call, {}


@rule("loss-without-gradient", "error", texts.NO_GRADIENT, texts.NO_GRADIENT_FIX)
def loss_without_gradient(source: Source) -> Iterator[Place]:
    for call, kind, first in losses(source):
        found = _breaks_gradient(source, first)
        if kind and found and _trained(source, call):
            yield call, {"name": found}


@rule("loss-rebuilt", "error", texts.LOSS_REBUILT, texts.LOSS_REBUILT_FIX)
def loss_rebuilt(source: Source) -> Iterator[Place]:
    """`loss = torch.tensor(loss.item(), requires_grad=True); loss.backward()` reaches no weight."""
    for call in source.calls:
        if method(call) != "backward":
            continue
        value = source.value_of(receiver(call))
        name = source.called(value)
        made = name in (
            "torch.tensor",
            "torch.as_tensor",
            "torch.FloatTensor",
            "torch.autograd.Variable",
            "torch.Tensor",
        )
        rebuilt = made or method(value) in ("detach", "requires_grad_") if value is not None else False
        if isinstance(value, ast.Call) and rebuilt and _holds_computed(value):
            yield call, {"code": ast.unparse(value)}


@rule("loss-arguments-swapped", "error", texts.SWAPPED, texts.SWAPPED_FIX)
def loss_arguments_swapped(source: Source) -> Iterator[Place]:
    for call, kind, _ in losses(source):
        if kind == "regression" or len(call.args) < 2:
            continue
        first, second = (_last(argument) for argument in call.args[:2])
        if first in _TARGETS and second in _OUTPUTS:
            yield call, {"first": first, "second": second}


@rule("softmax-without-dim", "warning", texts.NO_DIM, texts.NO_DIM_FIX)
def softmax_without_dim(source: Source) -> Iterator[Place]:
    for call in source.calls:
        name = source.called(call)
        layer = name in ("torch.nn.Softmax", "torch.nn.LogSoftmax") and not call.args
        function = name in ("torch.nn.functional.softmax", "torch.nn.functional.log_softmax") and len(call.args) < 2
        if (layer or function) and not any(one.arg in ("dim", None) for one in call.keywords):
            yield call, {"name": name.rpartition(".")[2]}


@rule("view-for-transpose", "warning", texts.VIEW_FOR_TRANSPOSE, texts.VIEW_FOR_TRANSPOSE_FIX)
def view_for_transpose(source: Source) -> Iterator[Place]:
    """`x.view(x.size(1), x.size(0), ...)` does not swap axes: it deals the values out anew."""
    for call in source.calls:
        if method(call) not in ("view", "reshape") or len(call.args) < 2:
            continue
        owner = ast.unparse(receiver(call))
        axes = [_axis(argument, owner) for argument in call.args[:2]]
        if axes == [1, 0]:
            yield call, {"code": ast.unparse(call)}


@rule("dropout-always-on", "error", texts.DROPOUT_ALWAYS, texts.DROPOUT_ALWAYS_FIX)
def dropout_always_on(source: Source) -> Iterator[Place]:
    """`F.dropout(x)` trains by default, in evaluation too."""
    for call in source.calls:
        name = source.called(call)
        if not name.startswith("torch.nn.functional.") or not name.rpartition(".")[2].rstrip("123d").startswith(
            "dropout"
        ):
            continue
        mode = keyword(call, "training", 2)
        rate = keyword(call, "p", 1)
        attribute = isinstance(rate, ast.Constant) and rate.value == 0
        known = not any(one.arg is None for one in call.keywords)
        if mode is None and known and not attribute and source.class_around(call) is not None:
            yield call, {}


@rule("gradients-unused", "error", texts.GRADIENTS_UNUSED, texts.GRADIENTS_UNUSED_FIX)
def gradients_unused(source: Source) -> Iterator[Place]:
    """MindSpore: `loss, grads = grad_fn(...)` in a loop, and no line uses `grads`."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple) or len(node.targets) > 1:
            continue
        made = source.called(source.value_of(node.value.func)) if isinstance(node.value, ast.Call) else ""
        if made not in ("mindspore.value_and_grad", "mindspore.ops.value_and_grad", "torch.func.grad_and_value"):
            continue
        last = node.targets[0].elts[-1] if made.startswith("mindspore") else node.targets[0].elts[0]
        if isinstance(last, ast.Name) and not last.id.startswith("_") and source.loops_around(node):
            scope = source.scope(node)
            uses = [one for one in ast.walk(scope) if isinstance(one, ast.Name) and one.id == last.id]
            if all(isinstance(one.ctx, ast.Store) for one in uses):
                yield node, {"name": last.id}


def _breaks_gradient(source: Source, node: ast.expr) -> str:
    """The operation on the way to a value through which no gradient passes."""
    value = source.value_of(node)
    for _ in range(4):
        if not isinstance(value, ast.Call):
            return ""
        name = method(value) or source.called(value).rpartition(".")[2]
        if name in _NO_GRADIENT and (method(value) or source.called(value).startswith(("torch.", "mindspore."))):
            return name
        inner = value.args[0] if source.called(value).startswith("torch.") and value.args else None
        if inner is None and isinstance(value.func, ast.Attribute):
            inner = value.func.value if method(value) in ("float", "view", "squeeze", "to", "long", "reshape") else None
        if inner is None:
            return ""
        value = source.value_of(inner)
    return ""


def _trained(source: Source, call: ast.Call) -> bool:
    """True when `.backward()` is called on the result, in the same function."""
    scope = source.scope(call)
    parent = source.parents.get(call)
    if isinstance(parent, ast.Attribute) and parent.attr == "backward":
        return True
    names = {ast.unparse(target) for target in parent.targets} if isinstance(parent, ast.Assign) else set()
    return any(
        isinstance(node, ast.Call) and method(node) == "backward" and ast.unparse(receiver(node)) in names
        for node in ast.walk(scope)
    )


def _holds_computed(value: ast.Call) -> bool:
    """True when a rebuilt tensor carries a computed number and no constant."""
    inner = value.args[0] if value.args else (value.func.value if isinstance(value.func, ast.Attribute) else None)
    if inner is None or isinstance(inner, ast.Constant | ast.List):
        return False
    if method(value) == "requires_grad_":
        return method(inner) in ("detach", "item", "clone") and "detach" in ast.unparse(inner)
    return True


def _last(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Attribute):
        return node.attr.lower()
    return node.id.lower() if isinstance(node, ast.Name) else ""


def _axis(node: ast.expr, owner: str) -> int | None:
    """k of `x.size(k)` or `x.shape[k]`."""
    if isinstance(node, ast.Call) and method(node) == "size" and node.args and ast.unparse(receiver(node)) == owner:
        node = node.args[0]
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == f"{owner}.shape":
        node = node.slice
    else:
        return None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
