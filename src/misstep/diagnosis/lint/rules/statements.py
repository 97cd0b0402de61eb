"""Lines that look as if they did something and do nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from misstep.diagnosis.lint.roles import is_loader, is_network, is_optimizer, is_scheduler
from misstep.diagnosis.lint.rule import Place, rule
from misstep.diagnosis.lint.source import Source, keyword, method, number, receiver
from misstep.sentences.advice import lint as texts

_VERBS = frozenset({"zero_grad", "step", "backward", "eval", "train", "set_train"})
_SHAPERS = (
    "view",
    "reshape",
    "permute",
    "transpose",
    "squeeze",
    "unsqueeze",
    "flatten",
    "expand",
    "repeat",
    "contiguous",
)
_CASTS = ("detach", "float", "double", "half", "long", "int")
_PURE = frozenset((*_SHAPERS, *_CASTS, "clamp", "softmax", "log_softmax", "sigmoid", "relu"))
_PURE_FUNCTIONS = (
    "torch.nn.functional.",
    "torch.clamp",
    "torch.relu",
    "torch.softmax",
    "torch.reshape",
    "torch.squeeze",
)


@rule("call-without-parentheses", "error", texts.NOT_CALLED, texts.NOT_CALLED_FIX)
def call_without_parentheses(source: Source) -> Iterator[Place]:
    for node in source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr in _VERBS:
            yield node, {"code": ast.unparse(node.value)}


@rule("result-discarded", "error", texts.RESULT_DISCARDED, texts.RESULT_DISCARDED_FIX)
def result_discarded(source: Source) -> Iterator[Place]:
    if not any(name.partition(".")[0] in ("torch", "mindspore") for name in source.imports.values()):
        return
    for node in source.nodes:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or _inplace(node.value):
            continue
        call, name = node.value, source.called(node.value)
        pure_function = name.startswith(_PURE_FUNCTIONS) and "embedding" not in name  # max_norm writes the weights
        if pure_function or (method(call) in _PURE and _is_tensor(source, receiver(call))):
            yield node, {"code": ast.unparse(call)}


@rule("moved-in-vain", "error", texts.MOVED_IN_VAIN, texts.MOVED_IN_VAIN_FIX)
def moved_in_vain(source: Source) -> Iterator[Place]:
    """`inputs.to(device)` returns the moved tensor; only a module moves itself."""
    for node in source.nodes:
        if not isinstance(node, ast.Expr) or method(node.value) not in ("to", "cuda", "cpu"):
            continue
        assert isinstance(node.value, ast.Call)
        owner = receiver(node.value)
        if not is_network(source, owner) and _is_tensor(source, owner) and not _is_mapping(source, owner):
            yield node, {"code": ast.unparse(node.value), "name": ast.unparse(owner)}


@rule("optimizer-in-loop", "warning", texts.OPTIMIZER_IN_LOOP, texts.OPTIMIZER_IN_LOOP_FIX)
def optimizer_in_loop(source: Source) -> Iterator[Place]:
    """Made anew for every batch, an optimizer forgets its momentum, and a scheduler its epoch."""
    for call in source.calls:
        name = source.called(call)
        if not name.startswith("torch.optim.") or not name.rpartition(".")[2][:1].isupper():
            continue
        loops = source.loops_around(call)
        if loops and isinstance(loops[0], ast.For) and is_loader(source, loops[0].iter) and _updates(source, loops[0]):
            yield call, {"name": name.rpartition(".")[2]}


@rule("rate-huge", "warning", texts.RATE_HUGE, texts.RATE_HUGE_FIX)
def rate_huge(source: Source) -> Iterator[Place]:
    """Adam moves every weight by about the learning rate, whatever the gradient: 0.1 throws a network about."""
    for call in source.calls:
        name = source.called(call)
        last = name.rpartition(".")[2]
        adaptive = last in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "AdamWeightDecay", "RMSprop", "RMSProp")
        known = name.startswith(("torch.optim.", "mindspore.nn.", "mindspore.experimental.optim."))
        if not known or not (adaptive or last == "SGD"):
            continue
        rate = keyword(call, "lr", 1) or keyword(call, "learning_rate")
        value = number(source.value_of(rate))
        limit = 0.1 if adaptive else 10.0
        if value is not None and value >= limit:
            yield call, {"name": last, "rate": f"{value:g}", "limit": f"{limit:g}"}


def _inplace(call: ast.Call) -> bool:
    return any(
        one.arg in ("inplace", "out") and not (isinstance(one.value, ast.Constant) and one.value.value is False)
        for one in call.keywords
    ) or (method(call) or ast.unparse(call.func)).endswith("_")


def _is_tensor(source: Source, node: ast.expr) -> bool:
    """True for what surely is a tensor: the batch of a loader, or the result of a framework's function."""
    value = source.value_of(node)
    if isinstance(value, ast.Call):
        name = source.called(value)
        made = name.startswith(("torch.", "mindspore.")) and name.rpartition(".")[2][:1].islower()
        return (
            made
            and not name.startswith(
                (
                    "torch.nn.",
                    "torch.optim.",
                    "torch.jit.",
                    "torch.compile",
                    "torch.load",
                    "torch.hub.",
                    "torch.cuda.",
                    "torch.device",
                )
            )
        ) or is_network(source, value.func)
    if not isinstance(node, ast.Name):
        return False
    for loop in source.loops_around(node):
        if isinstance(loop, ast.For) and is_loader(source, loop.iter):
            names = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
            return node.id in names and not _is_counter(loop, node.id)
    return False


def _is_mapping(source: Source, node: ast.expr) -> bool:
    """True for a batch that is used as a dictionary: some of those move themselves."""
    name = ast.unparse(node)
    for other in ast.walk(source.scope(node)):
        if isinstance(other, ast.Subscript) and ast.unparse(other.value) == name:
            return True
        if isinstance(other, ast.keyword) and other.arg is None and ast.unparse(other.value) == name:
            return True
    return False


def _is_counter(loop: ast.For, name: str) -> bool:
    """True for the number that enumerate counts."""
    first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else None
    counts = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "enumerate"
    return counts and isinstance(first, ast.Name) and first.id == name


def _updates(source: Source, loop: ast.AST) -> bool:
    return any(
        method(node) == "step"
        and isinstance(node, ast.Call)
        and (is_optimizer(source, receiver(node)) or is_scheduler(source, receiver(node)))
        for node in ast.walk(loop)
    )
