"""Names for cells and parameters, found while the program runs.

A cell is named by its path in the network it belongs to, the outermost cell called; parameters bear the names MindSpore
gave them. The first network's names stand alone; those of later ones (a discriminator, a loss) begin with their class.
MindSpore's own training wrappers are looked through, so that a network has the same names in a functional loop, in
TrainOneStepCell and in Model.train.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import mindspore as ms
from mindspore import nn
from mindspore.experimental.optim.optimizer import Optimizer as TorchLikeOptimizer
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

from misstep.adapters.mindspore.graph.pynative_mode import pynative
from misstep.adapters.settings import settings_of
from misstep.adapters.source import user_source
from misstep.adapters.step.frame import Catalog
from misstep.core.graph import Source

LIBRARY = os.path.dirname(os.path.abspath(ms.__file__)) + os.sep
OPTIMIZERS = (nn.Optimizer, TorchLikeOptimizer)
WRAPPERS = tuple(
    getattr(nn, name)
    for name in (
        "WithLossCell",
        "TrainOneStepCell",
        "TrainOneStepWithLossScaleCell",
        "WithEvalCell",
        "ForwardValueAndGrad",
    )
    if hasattr(nn, name)
)


def users_line(frame: FrameType | None) -> Source | None:
    """The nearest line outside of MindSpore and misstep."""
    return user_source(frame, LIBRARY)


class Names:
    """Which node a cell is, and which name a parameter has."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._roots: list[weakref.ref[nn.Cell]] = []
        self._paths: dict[int, tuple[weakref.ref[nn.Cell], str, str]] = {}
        self._nodes: dict[int, tuple[weakref.ref[nn.Cell], int]] = {}
        self._parameters: dict[int, tuple[weakref.ref[ms.Parameter], str]] = {}
        self._taken: set[str] = set()
        self._prefixes: set[str] = set()
        self._users: dict[str, list[int]] = {}
        self._optimizers: dict[int, tuple[weakref.ref[nn.Cell], int]] = {}

    def node(self, cell: nn.Cell, frame: FrameType | None) -> tuple[int, str]:
        """The node of a cell about to be called, and its name."""
        known = self._nodes.get(id(cell))
        if known is None or known[0]() is not cell:
            self.adopt(cell)
            _, path, graph = self._paths[id(cell)]
            number = self.catalog.node(
                path,
                "module",
                type(cell).__name__,
                source=users_line(frame),
                graph=graph,
                settings=lambda: settings_of(cell),
            )
            known = self._nodes[id(cell)] = (weakref.ref(cell), number)
        return known[1], self.catalog.graph.nodes[known[1]].name

    def adopt(self, cell: nn.Cell) -> None:
        """Name everything inside this network, unless it is known already."""
        if self.has(cell):
            return
        if isinstance(cell, WRAPPERS):
            for inside in cell.name_cells().values():
                if not isinstance(inside, OPTIMIZERS):
                    self.adopt(inside)
            return
        trains = bool(cell.trainable_params())
        first = trains and not self._roots
        if trains:
            self._roots.append(weakref.ref(cell))
        prefix = self._prefix(type(cell).__name__)
        for path, part in cell.cells_and_names():
            if self.has(part):
                continue
            name = prefix if not path else path if first else f"{prefix}.{path}"
            self._paths[id(part)] = (weakref.ref(part), name, prefix)
            for parameter in part.parameters_and_names(expand=False):
                self._users.setdefault(self.parameter(parameter[1], prefix), []).append(id(part))

    def has(self, cell: nn.Cell) -> bool:
        known = self._paths.get(id(cell))
        return known is not None and known[0]() is cell

    def parameter(self, parameter: ms.Parameter, prefix: str = "") -> str:
        """MindSpore's name; one that another network's parameter has already gets that network's class in front."""
        known = self._parameters.get(id(parameter))
        if known is not None and known[0]() is parameter:
            return known[1]
        name = str(parameter.name)
        if name in self._taken and prefix:
            name = f"{prefix}.{name}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        self._parameters[id(parameter)] = (weakref.ref(parameter), name)
        return name

    def users(self, parameter: str) -> list[int]:
        """Nodes of the cells that hold this parameter and have run."""
        return [self._nodes[cell][1] for cell in self._users.get(parameter, ()) if cell in self._nodes]

    def optimizer(self, optimizer: nn.Cell, frame: FrameType | None = None) -> int:
        known = self._optimizers.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            count = len(self._optimizers)
            node = self.catalog.node(
                "optimizer" if count == 0 else f"optimizer.{count + 1}",
                "optimizer",
                type(optimizer).__name__,
                phase="optimizer",
                source=users_line(frame),
                settings=lambda: settings_of(optimizer),
            )
            known = self._optimizers[id(optimizer)] = (weakref.ref(optimizer), node)
        return known[1]

    def networks(self) -> Iterator[nn.Cell]:
        for reference in self._roots:
            root = reference()
            if root is not None:
                yield root

    def optimizers(self) -> Iterator[nn.Cell]:
        for reference, _ in self._optimizers.values():
            optimizer = reference()
            if optimizer is not None:
                yield optimizer

    def _prefix(self, kind: str) -> str:
        prefix, count = kind, 1
        while prefix in self._prefixes:
            count += 1
            prefix = f"{kind}_{count}"
        self._prefixes.add(prefix)
        return prefix


def learning_rate(optimizer: nn.Cell) -> Any:
    """The rate of the next update as a tensor or number; None when nobody can tell."""
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        return groups[0].get("lr")
    rate = getattr(optimizer, "learning_rate", None)
    if isinstance(rate, list | tuple | nn.CellList | ms.ParameterTuple):
        rate = rate[0]
    table = getattr(rate, "learning_rate", None)  # a list of rates, looked up by the step
    step = getattr(optimizer, "global_step", None)
    if isinstance(table, ms.Tensor) and table.ndim == 1 and step is not None:
        rates = table.asnumpy()
        return float(rates[min(int(step.asnumpy().reshape(-1)[0]), len(rates) - 1)])
    if isinstance(rate, LearningRateSchedule) and step is not None:
        with pynative():
            return rate.construct(ms.Tensor(step.asnumpy().copy()))
    return rate if isinstance(rate, ms.Tensor) else None
