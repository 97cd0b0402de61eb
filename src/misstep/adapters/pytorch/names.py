"""Names for modules and parameters, found while the program runs.

A module is named by its path in the network it belongs to: `blocks.3.fc`. The network is the outermost module called,
or a larger one that the calling function holds (`model.encoder(x)` without ever calling `model`). The first network's
names stand alone; those of later ones (a discriminator, a loss) begin with their class: `Discriminator.net.0`.
"""

from __future__ import annotations

import linecache
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType

import torch
from torch import nn

from misstep.adapters.settings import settings_of
from misstep.adapters.step.frame import Catalog
from misstep.core.graph import Phase, Source

_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (torch.__file__, os.path.dirname(os.path.dirname(__file__)))
)
_TRAINERS = re.compile(
    r"/(site|dist)-packages/"
    r"(keras|lightning|pytorch_lightning|lightning_fabric|accelerate|ignite|transformers|timm|peft|trl)/(?!models/)"
)
"""Packages that call the user's code and are called by it. Where they define networks, their lines are kept."""
_IS_USER: dict[CodeType, bool] = {}


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame outside torch and misstep: the user's own line."""
    while frame is not None:
        code = frame.f_code
        mine = _IS_USER.get(code)
        if mine is None:
            mine = _IS_USER[code] = is_users(code.co_filename)
        if mine:
            return frame
        frame = frame.f_back
    return None


def is_users(file: str) -> bool:
    """Whether a file belongs to the user's program, not to torch, misstep or a trainer."""
    return not file.startswith(("<frozen", *_LIBRARIES)) and _TRAINERS.search(file) is None


def source_at(frame: FrameType | None) -> Source | None:
    """The line a frame stands on, with its text."""
    if frame is None:
        return None
    return source_line(frame.f_code.co_filename, frame.f_lineno)


def source_line(file: str, line: int) -> Source:
    return Source(_short(file), line, linecache.getline(file, line).strip())


def _short(file: str) -> str:
    """Relative to where the program was started, when it lies below: reports travel between machines."""
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return file if relative.startswith("..") else relative


class Names:
    """Which node a module is, and which name a parameter has."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.roots: list[weakref.ref[nn.Module]] = []
        self._nodes: dict[int, tuple[weakref.ref[nn.Module], int]] = {}
        self._paths: dict[int, tuple[weakref.ref[nn.Module], str, str, Phase]] = {}
        self._parameters: dict[int, tuple[weakref.ref[torch.Tensor], str]] = {}
        self._prefixes: set[str] = set()
        self._optimizers: dict[int, tuple[weakref.ref[torch.optim.Optimizer], int]] = {}
        self.place: Callable[[FrameType | None], Source | None] = source_at
        """The line of a user's frame; a replay knows better where the loop stood then."""

    def node(self, module: nn.Module, frame: FrameType | None) -> int:
        """The node of a module about to be called from `frame`."""
        known = self._nodes.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        if not self._has_path(module):
            self.adopt(_larger(module, user_frame(frame)))
        _, path, graph, phase = self._paths[id(module)]
        source = self.place(user_frame(frame))
        number = self.catalog.node(
            path,
            "module",
            type(plain(module)).__name__,
            phase=phase,
            source=source,
            graph=graph,
            settings=lambda: settings_of(module),
        )
        self._nodes[id(module)] = (weakref.ref(module), number)
        return number

    def name(self, number: int) -> str:
        return self.catalog.graph.nodes[number].name

    def adopt(self, root: nn.Module) -> None:
        """Name everything inside this network."""
        if self._has_path(root):
            return
        graph = type(plain(root)).__name__
        has_weights = next(root.parameters(), None) is not None
        first = has_weights and not any(ref() is not None for ref in self.roots)
        if has_weights:
            self.roots.append(weakref.ref(root))
        # A network without weights that is called beside one with weights is a loss function.
        phase: Phase = "forward" if has_weights or not self.roots else "loss"
        prefix = self._prefix(graph)
        for path, module in root.named_modules():
            if self._has_path(module):
                continue
            path = plain_path(path)
            name = prefix if not path else path if first else f"{prefix}.{path}"
            self._paths[id(module)] = (weakref.ref(module), name, prefix, phase)
        for path, parameter in (*root.named_parameters(), *root.named_buffers()):
            if not self._named(parameter):
                path = plain_path(path)
                self._parameters[id(parameter)] = (weakref.ref(parameter), path if first else f"{prefix}.{path}")

    def parameter(self, tensor: torch.Tensor) -> str:
        """`blocks.0.fc.weight`; a tensor that belongs to no network is `param.0`, `param.1` …"""
        if self._named(tensor):
            return self._parameters[id(tensor)][1]
        for root in self.networks():  # a layer was added or replaced since the network was named
            for path, parameter in root.named_parameters():
                if parameter is tensor:
                    name = self._under(root, plain_path(path))
                    self._parameters[id(tensor)] = (weakref.ref(tensor), name)
                    return name
        count = sum(name.startswith("param.") for _, name in self._parameters.values())
        name = f"param.{count}"
        self._parameters[id(tensor)] = (weakref.ref(tensor), name)
        return name

    def discover(self, tensors: Iterable[torch.Tensor], frame: FrameType | None) -> None:
        """Name tensors nobody has called yet by what the program calls them: networks and variables in its frames."""
        unknown = {id(tensor): tensor for tensor in tensors if not self._named(tensor)}
        while unknown and frame is not None:
            if user_frame(frame) is frame:
                spaces = [*frame.f_locals.items(), *frame.f_globals.items()]
                held = [value for _, value in spaces if isinstance(value, nn.Module)]
                for network in sorted(held, key=lambda one: -sum(1 for _ in one.modules())):
                    if any(id(parameter) in unknown for parameter in network.parameters()):
                        self.adopt(network)
                for name, value in spaces:
                    if id(value) in unknown and not self._named(value):
                        self._parameters[id(value)] = (weakref.ref(value), name)
                unknown = {key: tensor for key, tensor in unknown.items() if not self._named(tensor)}
            frame = frame.f_back

    def _named(self, tensor: torch.Tensor) -> bool:
        known = self._parameters.get(id(tensor))
        return known is not None and known[0]() is tensor

    def optimizer(self, optimizer: torch.optim.Optimizer, frame: FrameType | None = None) -> int:
        known = self._optimizers.get(id(optimizer))
        if known is not None and known[0]() is optimizer:
            return known[1]
        count = len(self._optimizers)
        name = "optimizer" if count == 0 else f"optimizer.{count + 1}"
        source = source_at(user_frame(frame))
        number = self.catalog.node(
            name,
            "optimizer",
            type(optimizer).__name__,
            phase="optimizer",
            source=source,
            settings=lambda: settings_of(optimizer),
        )
        self._optimizers[id(optimizer)] = (weakref.ref(optimizer), number)
        return number

    def networks(self) -> Iterator[nn.Module]:
        for ref in self.roots:
            root = ref()
            if root is not None:
                yield root

    def paths(self) -> Iterator[tuple[int, str, str]]:
        """(id, name, type) of every module that has a name."""
        for key, (ref, name, _, _) in list(self._paths.items()):
            module = ref()
            if module is not None:
                yield key, name, type(module).__name__

    def _under(self, root: nn.Module, path: str) -> str:
        _, own, prefix, _ = self._paths[id(root)]
        return path if self.roots and self.roots[0]() is root else f"{own or prefix}.{path}"

    def _has_path(self, module: nn.Module) -> bool:
        known = self._paths.get(id(module))
        return known is not None and known[0]() is module

    def _prefix(self, kind: str) -> str:
        prefix, count = kind, 1
        while prefix in self._prefixes:
            count += 1
            prefix = f"{kind}_{count}"
        self._prefixes.add(prefix)
        return prefix


def plain(module: nn.Module) -> nn.Module:
    """The module itself, without the wrapper of a compiler."""
    inner = getattr(module, "_orig_mod", None) if type(module).__name__ == "OptimizedModule" else None
    return inner if isinstance(inner, nn.Module) else module


def plain_path(path: str) -> str:
    """A path without the wrappers of a compiler: `inner._orig_mod.b` is the user's `inner.b`."""
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


def _larger(module: nn.Module, frame: FrameType | None) -> nn.Module:
    """The largest network the caller holds that contains this module: parts called one by one keep their paths."""
    best, size = module, 0
    if frame is None or next(module.parameters(), None) is None:
        return module
    held = [value for space in (frame.f_locals, frame.f_globals) for value in list(space.values())]
    for value in held:
        if isinstance(value, nn.Module) and value is not module:
            inside = list(value.modules())
            if len(inside) > size and any(part is module for part in inside):
                best, size = value, len(inside)
    return best
