"""How a network is put together: layers that are not registered, shared by mistake, or made anew at every call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from misstep.diagnosis.lint.roles import SEQUENTIAL, is_network
from misstep.diagnosis.lint.rule import Place, rule
from misstep.diagnosis.lint.source import FORWARD, NetworkClass, Source, keyword, method, receiver, self_attribute
from misstep.sentences.advice import lint as texts

CONTAINERS = ("torch.nn.ModuleList", "mindspore.nn.CellList", *SEQUENTIAL)
_WEIGHTED = re.compile(
    r"(Lazy)?(Linear|Bilinear|Dense|Conv|Embedding|LSTM|GRU|RNN|\w*Norm|MultiheadAttention|MultiHeadAttention|Transformer|PReLU)"
)
"""Layers of either framework that have weights, by the beginning of their name."""
_MOVES = frozenset({"to", "cuda", "cpu", "half", "double", "float", "bfloat16", "clone", "detach"})


@rule("layers-in-list", "error", texts.LAYERS_IN_LIST, texts.LAYERS_IN_LIST_FIX)
def layers_in_list(source: Source) -> Iterator[Place]:
    for network in source.networks.values():
        registered = _registered_later(network)
        for name, value in network.attributes.items():
            items = _items(value) or _appended(network, name, value)
            if name not in registered and items and all(_has_weights(source, item) for item in items):
                container = "CellList" if _is_cell(source, items[0]) else "ModuleList"
                yield value, {"name": name, "container": container}


@rule("no-super-init", "error", texts.NO_SUPER_INIT, texts.NO_SUPER_INIT_FIX)
def no_super_init(source: Source) -> Iterator[Place]:
    """PyTorch raises here; MindSpore sometimes does not. Either way the fix is worth a line."""
    for network in source.networks.values():
        init = network.methods.get("__init__")
        if init is None or any(method(node) in ("__init__", "__post_init__") for node in ast.walk(init)):
            continue
        if any(
            self_attribute(target) for node in ast.walk(init) if isinstance(node, ast.Assign) for target in node.targets
        ):
            yield init, {"name": network.node.name}


@rule("layer-made-in-forward", "error", texts.LAYER_IN_FORWARD, texts.LAYER_IN_FORWARD_FIX)
def layer_made_in_forward(source: Source) -> Iterator[Place]:
    for network in source.networks.values():
        for name in FORWARD:
            for node in ast.walk(network.methods[name]) if name in network.methods else ():
                if not isinstance(node, ast.Call) or not _has_weights(source, node):
                    continue
                if not _cached(source, node):
                    yield node, {"layer": source.called(node).rpartition(".")[2], "method": name}


@rule("one-layer-repeated", "error", texts.ONE_LAYER_REPEATED, texts.ONE_LAYER_REPEATED_FIX)
def one_layer_repeated(source: Source) -> Iterator[Place]:
    for call in source.calls:
        if source.called(call) not in CONTAINERS:
            continue
        for argument in call.args:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Mult):
                continue
            listed = next((side for side in (inner.left, inner.right) if isinstance(side, ast.List | ast.Tuple)), None)
            if listed is not None and any(_has_weights(source, item) for item in listed.elts):
                yield inner, {}


@rule("parameter-not-leaf", "error", texts.PARAMETER_NOT_LEAF, texts.PARAMETER_NOT_LEAF_FIX)
def parameter_not_leaf(source: Source) -> Iterator[Place]:
    """`nn.Parameter(...) * 0.1` and `nn.Parameter(...).to(device)` are tensors: no optimizer ever sees them."""
    for network in source.networks.values():
        for name, value in network.attributes.items():
            inner: ast.expr = value
            if method(value) in _MOVES and isinstance(value, ast.Call):
                inner = receiver(value)
            elif isinstance(value, ast.BinOp):
                inner = value.left if source.called(value.left) == "torch.nn.Parameter" else value.right
            if inner is not value and source.called(inner) == "torch.nn.Parameter":
                yield value, {"name": name}


@rule("tensor-not-parameter", "warning", texts.TENSOR_NOT_PARAMETER, texts.TENSOR_NOT_PARAMETER_FIX)
def tensor_not_parameter(source: Source) -> Iterator[Place]:
    for network in source.networks.values():
        for name, value in network.attributes.items():
            if not isinstance(value, ast.Call) or not source.called(value).startswith("torch."):
                continue
            wants = keyword(value, "requires_grad")
            if isinstance(wants, ast.Constant) and wants.value is True and "Parameter" not in source.called(value):
                yield value, {"name": name}


@rule("frozen-in-vain", "error", texts.FROZEN_IN_VAIN, texts.FROZEN_IN_VAIN_FIX)
def frozen_in_vain(source: Source) -> Iterator[Place]:
    """`model.requires_grad = False` and `p.require_grad = False` set an attribute that nothing reads."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        for target in node.targets:
            if not isinstance(target, ast.Attribute) or not isinstance(node.value.value, bool):
                continue
            on_network = target.attr == "requires_grad" and (
                is_network(source, target.value) or self_attribute(target.value) in _layers_of(source, target.value)
            )
            if on_network or target.attr in ("require_grad", "requires_grads", "required_grad", "require_grads"):
                yield node, {"name": target.attr, "value": str(node.value.value)}


@rule("optimizer-before-layers", "error", texts.OPTIMIZER_FIRST, texts.OPTIMIZER_FIRST_FIX)
def optimizer_before_layers(source: Source) -> Iterator[Place]:
    """A layer replaced after the optimizer took its parameters is never trained."""
    for call in source.calls:
        if (
            not source.called(call).startswith("torch.optim.")
            or ".lr_scheduler." in source.called(call)
            or not call.args
        ):
            continue
        held = call.args[0]
        if method(held) not in ("parameters", "trainable_params") or not isinstance(held, ast.Call):
            continue
        owner = ast.unparse(receiver(held))
        scope = source.scope(call)
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and node.lineno > call.lineno and source.scope(node) is scope:
                for target in node.targets:
                    if not isinstance(target, ast.Attribute) or not _has_weights(source, node.value):
                        continue
                    if f"{ast.unparse(target.value)}.".startswith(f"{owner}."):
                        yield node, {"name": ast.unparse(target), "line": call.lineno}


def _layers_of(source: Source, node: ast.expr) -> set[str | None]:
    owner = source.class_around(node)
    return {name for name, value in owner.attributes.items() if _has_weights(source, value)} if owner else set()


def _has_weights(source: Source, node: ast.expr, depth: int = 0) -> bool:
    """True when an expression makes a layer that has weights, the framework's or one of the project's."""
    name = source.called(node)
    if not name:
        return False
    network = source.find_network(name)
    if network is not None:
        return depth < 4 and any(
            _has_weights(network.source, inner, depth + 1)
            for inner in ast.walk(network.node)
            if isinstance(inner, ast.Call)
        )
    home, _, last = name.rpartition(".")
    if home in ("torch.nn", "mindspore.nn", "mindspore.mint.nn") and last in ("Sequential", "SequentialCell"):
        return isinstance(node, ast.Call) and any(_has_weights(source, one, depth + 1) for one in node.args)
    return home in ("torch.nn", "mindspore.nn", "mindspore.mint.nn") and _WEIGHTED.match(last) is not None


def _is_cell(source: Source, node: ast.expr) -> bool:
    name = source.called(node)
    network = source.find_network(name)
    if network is not None:
        return "construct" in network.methods
    return name.startswith("mindspore")


def _items(value: ast.expr) -> list[ast.expr]:
    """The members of a plain list, tuple or dictionary, written out or as a comprehension."""
    if isinstance(value, ast.List | ast.Tuple):
        return list(value.elts)
    if isinstance(value, ast.Dict):
        return list(value.values)
    if isinstance(value, ast.ListComp):
        return [value.elt]
    if isinstance(value, ast.DictComp):
        return [value.value]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Add):
        return [*_items(value.left), *_items(value.right)]
    return []


def _appended(network: NetworkClass, name: str, value: ast.expr) -> list[ast.expr]:
    """What is appended to `self.NAME` when that begins as an empty list."""
    if not isinstance(value, ast.List) or value.elts:
        return []
    calls = [node for node in ast.walk(network.node) if isinstance(node, ast.Call) and method(node) == "append"]
    appended = [call.args[0] for call in calls if call.args and self_attribute(receiver(call)) == name]
    return [network.source.value_of(item) or item for item in appended]


def _registered_later(network: NetworkClass) -> set[str | None]:
    """Lists whose members are registered after all: by add_module, a ModuleList made of them, or Sequential(*list)."""
    found: set[str | None] = set()
    for node in ast.walk(network.node):
        if not isinstance(node, ast.Call):
            continue
        wraps = network.source.called(node) in (*CONTAINERS, "torch.nn.ModuleDict")
        if wraps or method(node) in ("add_module", "register_module", "insert_child_to_cell"):
            found |= {self_attribute(inner) for argument in node.args for inner in ast.walk(argument)}
            found |= {self_attribute(inner) for loop in network.source.loops_around(node) for inner in ast.walk(loop)}
    return found


def _cached(source: Source, node: ast.Call) -> bool:
    """True when the layer is kept: made once, behind a condition, as `self.x = ...`."""
    for parent in source.ancestors(node):
        if isinstance(parent, ast.Assign) and any(self_attribute(target) for target in parent.targets):
            return any(isinstance(one, ast.If | ast.Try) for one in source.ancestors(parent))
        if isinstance(parent, ast.FunctionDef):
            return False
    return False
