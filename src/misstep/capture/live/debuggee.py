"""What the live debugger asks of the session, and nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from misstep.adapters.base import UncompiledRuns
from misstep.adapters.step.frame import Catalog, Frame
from misstep.capture.keep.ledger import Ledger
from misstep.core.address import Address
from misstep.core.dumps import DumpSpec
from misstep.core.slices import Array
from misstep.core.watching.evaluate import DryRun
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.store.writing.writer import EndReason


class Debuggee(Protocol):
    """One training process. Everything here is called on its training thread."""

    catalog: Catalog
    frame: Frame
    rank: int
    initial_frame: Frame | None
    """The weights before the first step, while somebody may look at them."""
    step: int
    """The step under way, or at a boundary the one about to begin."""
    dumper: Any
    """Keeps whole tensors: see capture/keep/dump.py."""
    evaluator: Any
    """Knows hit_counts(), watched(id) and refused: see core/watching/evaluate.py."""
    ledger: Ledger
    """Every tensor that is held."""
    writer: Any
    """Takes event(kind, **facts), or None before training begins."""

    @property
    def modes(self) -> UncompiledRuns | None:
        """Runs compiled steps uncompiled; None where nothing is ever compiled."""

    @property
    def watchpoints(self) -> Sequence[Watchpoint]: ...
    @property
    def run_directory(self) -> Path | None: ...
    def add_watchpoint(self, watch: Watchpoint) -> Watchpoint:
        """Add, or replace by id; id 0 gets the next free one."""

    def add_dump(self, spec: DumpSpec) -> DumpSpec: ...
    def delete_watchpoint(self, id: int) -> None: ...
    def evaluate_now(self) -> list[Hit]:
        """Every watchpoint against the tensors that are there now."""

    def dry_run(self, watch: Watchpoint) -> DryRun: ...
    def tensor(self, address: str | Address) -> Array:
        """Live values; TensorUnavailable says why not."""

    def detach(self) -> None: ...
    def end(self, reason: EndReason, exit_code: int | None) -> None:
        """Write the last word of the run."""
