"""What an expression is in a training script: an optimizer, a scheduler, a loader, a network, a loss, an activation.

A role comes from what a name was assigned; only where that is out of sight (a parameter, another file) from the name.
"""

from __future__ import annotations

import ast

from misstep.diagnosis.lint.source import Function, NetworkClass, Source, method

OPTIMIZERS = ("torch.optim.", "mindspore.nn.optim.", "mindspore.experimental.optim.", "mindspore.mint.optim.")
SCHEDULERS = ("torch.optim.lr_scheduler.", "mindspore.experimental.optim.lr_scheduler.")
MINDSPORE_OPTIMIZERS = frozenset(
    f"mindspore.nn.{name}"
    for name in ("SGD", "Momentum", "Adam", "AdamWeightDecay", "RMSProp", "Adagrad", "Lamb", "LARS", "FTRL", "Rprop")
)
ACTIVATIONS: dict[str, str] = {
    **dict.fromkeys(
        (
            "torch.softmax",
            "torch.nn.functional.softmax",
            "torch.nn.Softmax",
            "torch.special.softmax",
            "mindspore.nn.Softmax",
            "mindspore.ops.softmax",
            "mindspore.ops.Softmax",
            "mindspore.mint.nn.functional.softmax",
        ),
        "softmax",
    ),
    **dict.fromkeys(
        (
            "torch.log_softmax",
            "torch.nn.functional.log_softmax",
            "torch.nn.LogSoftmax",
            "mindspore.nn.LogSoftmax",
            "mindspore.ops.log_softmax",
        ),
        "log_softmax",
    ),
    **dict.fromkeys(
        (
            "torch.sigmoid",
            "torch.nn.functional.sigmoid",
            "torch.nn.Sigmoid",
            "torch.special.expit",
            "mindspore.nn.Sigmoid",
            "mindspore.ops.sigmoid",
            "mindspore.ops.Sigmoid",
        ),
        "sigmoid",
    ),
    **dict.fromkeys(
        ("torch.relu", "torch.nn.functional.relu", "torch.nn.ReLU", "mindspore.nn.ReLU", "mindspore.ops.relu"), "relu"
    ),
    **dict.fromkeys(("torch.nn.Linear", "mindspore.nn.Dense", "mindspore.mint.nn.Linear"), "linear"),
}
"""What the last operation of a network leaves behind, by the name of the function or layer."""

LOSSES: dict[str, str] = {
    "torch.nn.CrossEntropyLoss": "cross_entropy",
    "torch.nn.functional.cross_entropy": "cross_entropy",
    "mindspore.nn.CrossEntropyLoss": "cross_entropy",
    "mindspore.nn.SoftmaxCrossEntropyWithLogits": "cross_entropy",
    "mindspore.ops.cross_entropy": "cross_entropy",
    "torch.nn.BCEWithLogitsLoss": "bce_with_logits",
    "torch.nn.functional.binary_cross_entropy_with_logits": "bce_with_logits",
    "mindspore.nn.BCEWithLogitsLoss": "bce_with_logits",
    "mindspore.ops.binary_cross_entropy_with_logits": "bce_with_logits",
    "torch.nn.BCELoss": "bce",
    "torch.nn.functional.binary_cross_entropy": "bce",
    "mindspore.nn.BCELoss": "bce",
    "mindspore.ops.binary_cross_entropy": "bce",
    "torch.nn.NLLLoss": "nll",
    "torch.nn.functional.nll_loss": "nll",
    "mindspore.nn.NLLLoss": "nll",
    "mindspore.ops.nll_loss": "nll",
    "torch.nn.MSELoss": "regression",
    "torch.nn.functional.mse_loss": "regression",
    "torch.nn.L1Loss": "regression",
    "torch.nn.functional.l1_loss": "regression",
    "torch.nn.SmoothL1Loss": "regression",
    "mindspore.nn.MSELoss": "regression",
    "mindspore.nn.L1Loss": "regression",
}
SEQUENTIAL = ("torch.nn.Sequential", "mindspore.nn.SequentialCell")
_SHAPERS = frozenset({"view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous", "float", "double", "clone"})
"""Methods that leave the values as they are."""


def is_optimizer(source: Source, node: ast.expr) -> bool:
    name = source.called(source.value_of(node))
    if name:
        return (name.startswith(OPTIMIZERS) and not name.startswith(SCHEDULERS)) or name in MINDSPORE_OPTIMIZERS
    return _last_name(node).startswith(("optim", "opt_")) or _last_name(node) in ("opt", "optimizer")


def is_scheduler(source: Source, node: ast.expr) -> bool:
    name = source.called(source.value_of(node))
    return name.startswith(SCHEDULERS) if name else "sched" in _last_name(node)


def is_scaler(source: Source, node: ast.expr) -> bool:
    name = source.called(source.value_of(node))
    return name.endswith("GradScaler") if name else _last_name(node) in ("scaler", "grad_scaler")


def is_loader(source: Source, node: ast.expr) -> bool:
    value = source.value_of(node)
    if isinstance(value, ast.Call) and source.called(value) in ("enumerate", "tqdm", "tqdm.tqdm", "tqdm.auto.tqdm"):
        return bool(value.args) and is_loader(source, value.args[0])
    if method(value) in ("create_dict_iterator", "create_tuple_iterator") if value is not None else False:
        return True
    name = source.called(value)
    return name.endswith("DataLoader") or _last_name(node).endswith(("loader", "_dl", "dataloader"))


def is_network(source: Source, node: ast.expr) -> bool:
    if source.network_of(node) is not None:
        return True
    name = source.called(source.value_of(node))
    if name:
        return name in SEQUENTIAL or name.startswith("torchvision.models.") or name.endswith(".from_pretrained")
    return _last_name(node) in ("model", "net", "network")


def loss_kind(source: Source, call: ast.Call) -> str:
    """Which loss a call computes: `criterion(...)`, `nn.CrossEntropyLoss()(...)` or `F.cross_entropy(...)`."""
    direct = source.dotted(call.func)
    if direct in LOSSES and direct.rpartition(".")[2][0].islower():
        return LOSSES[direct]
    return LOSSES.get(source.called(source.value_of(call.func)), "")


def tail_of(source: Source, node: ast.expr | None, depth: int = 0) -> str:
    """The kind of the last operation behind a value (softmax, sigmoid, relu, linear …); empty when unknown."""
    value = source.value_of(node)
    if not isinstance(value, ast.Call) or depth > 6:
        return ""
    name = source.called(value)
    if name in ACTIVATIONS:
        layer = name.rpartition(".")[2][0].isupper()
        return "" if layer and depth == 0 else ACTIVATIONS[name]
    if isinstance(value.func, ast.Attribute):
        if value.func.attr in ("softmax", "log_softmax", "sigmoid", "relu"):
            return str(value.func.attr)
        if value.func.attr in _SHAPERS:
            return tail_of(source, value.func.value, depth + 1)
    network = source.network_of(value.func)
    if network is not None:
        return network_tail(network, depth + 1)
    return layer_tail(source, source.value_of(value.func), depth + 1)


def layer_tail(source: Source, layer: ast.expr | None, depth: int = 0) -> str:
    """The kind of the last operation of a layer object."""
    name = source.called(layer)
    if name in SEQUENTIAL and isinstance(layer, ast.Call) and layer.args:
        last = layer.args[-1]
        if isinstance(last, ast.List) and last.elts:
            last = last.elts[-1]
        return "" if isinstance(last, ast.Starred) else layer_tail(source, source.value_of(last), depth + 1)
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    network = source.find_network(name) if name else None
    return network_tail(network, depth + 1) if network is not None and depth < 6 else ""


def network_tail(network: NetworkClass, depth: int = 0) -> str:
    """The kind of the last operation of a network: of the value its forward returns, when all returns agree."""
    forward: Function | None = network.forward
    if forward is None or depth > 6:
        return ""
    returned = [node.value for node in ast.walk(forward) if isinstance(node, ast.Return) and node.value is not None]
    kinds = {tail_of(network.source, value, depth + 1) for value in returned}
    return kinds.pop() if len(kinds) == 1 else ""


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr.lower()
    return node.id.lower() if isinstance(node, ast.Name) else ""
