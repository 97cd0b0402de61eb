"""Which frameworks there are, and which of them made an object.

Ours stand in a table; other packages add theirs through the entry point group `misstep.adapters`, each entry naming a
`Framework`. Only frameworks that the process has imported are asked, so a lookup never imports one.

>>> adapter_for(torch.nn.Linear(2, 2)).name
'pytorch'
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from misstep.errors import AdapterError

if TYPE_CHECKING:
    from misstep.adapters.base import Adapter

ENTRY_POINTS = "misstep.adapters"


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework misstep can watch."""

    name: str
    """What its adapter is called: `pytorch`."""
    package: str
    """What a program imports to use it: `torch`."""
    adapter: str
    """Where its adapter class lives: `misstep.adapters.pytorch.adapter:PyTorchAdapter`."""
    owns: Callable[[ModuleType, object], bool]
    """Given the imported package: did it make this object?"""
    trial: str = ""
    """A program that shows whether the framework works here, for `misstep env`; importing it when empty."""
    distribution: str = ""
    """What pip calls it, when that is not the name of the package."""


FRAMEWORKS: dict[str, Framework] = {
    framework.name: framework
    for framework in (
        Framework(
            "pytorch",
            "torch",
            "misstep.adapters.pytorch.adapter:PyTorchAdapter",
            lambda torch, thing: isinstance(thing, torch.nn.Module | torch.Tensor | torch.optim.Optimizer),
            "import torch; assert torch.ones(2).sum().item() == 2",
        ),
        Framework(
            "mindspore",
            "mindspore",
            "misstep.adapters.mindspore.adapter:MindSporeAdapter",
            lambda mindspore, thing: isinstance(thing, mindspore.nn.Cell | mindspore.Tensor),
            "import mindspore; assert mindspore.Tensor([1.0, 1.0]).asnumpy().sum() == 2",
        ),
    )
}


def frameworks() -> list[Framework]:
    """Every framework there is: ours, and those other packages register."""
    _load_entry_points()
    return list(FRAMEWORKS.values())


def adapter_for(thing: object) -> Adapter:
    """The adapter of the framework that made this object."""
    kind = type(thing)
    known = _ADAPTER_OF.get(kind)
    if known is not None:
        return known
    framework = _owner(thing) or (_owner(thing) if _load_entry_points() else None)
    if framework is None:
        raise AdapterError(
            f"no adapter knows {kind.__module__}.{kind.__qualname__};"
            f" misstep handles modules, tensors and optimizers of {_listed()}"
        )
    adapter = adapter_named(framework.name)
    if kind.__module__.partition(".")[0] in (framework.package.partition(".")[0], "misstep"):
        _ADAPTER_OF[kind] = adapter  # classes of the user's are not kept alive here
    return adapter


def adapter_named(name: str) -> Adapter:
    """The one adapter of that framework in this process."""
    if name not in _ADAPTERS:
        if name not in FRAMEWORKS:
            _load_entry_points()
        if name not in FRAMEWORKS:
            why = f"its package cannot be loaded: {BROKEN[name]}" if name in BROKEN else f"there are {_listed()}"
            raise AdapterError(f"no adapter is called {name!r}; {why}")
        module, _, attribute = FRAMEWORKS[name].adapter.partition(":")
        _ADAPTERS[name] = getattr(importlib.import_module(module), attribute)()
    return _ADAPTERS[name]


def register(framework: Framework, adapter: Adapter | None = None) -> None:
    """Add a framework to the table, for this process; with `adapter`, the one to use."""
    FRAMEWORKS[framework.name] = framework
    if adapter is not None:
        _ADAPTERS[framework.name] = adapter


BROKEN: dict[str, str] = {}
"""By name, why a framework of another package could not be loaded; one bad package does not stop the others."""
_ADAPTERS: dict[str, Adapter] = {}
_ADAPTER_OF: dict[type, Adapter] = {}
"""By the framework's own types: a dump asks for each of thousands of tensors a step."""
_loaded: list[bool] = []


def _owner(thing: object) -> Framework | None:
    for framework in FRAMEWORKS.values():
        package = sys.modules.get(framework.package)
        if package is not None and framework.owns(package, thing):
            return framework
    return None


def _load_entry_points() -> bool:
    """Read what other packages offer, once; whether that added anything."""
    if _loaded:
        return False
    _loaded.append(True)
    before = len(FRAMEWORKS)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if entry.name in FRAMEWORKS:
            continue
        try:
            FRAMEWORKS[entry.name] = entry.load()
        except Exception as error:
            BROKEN[entry.name] = f"{type(error).__name__}: {error}"
    return len(FRAMEWORKS) > before


def _listed() -> str:
    return ", ".join(sorted(framework.package for framework in FRAMEWORKS.values()))
