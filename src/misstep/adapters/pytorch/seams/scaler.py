"""Updates that a gradient scaler leaves out: it looks for infinities itself, and then does not call the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misstep.adapters.pytorch.seams.steps import StepSeam


def watch_scaler(seam: StepSeam) -> Callable[[], None]:
    """Stand beside every GradScaler; what is returned takes it back."""
    from torch.amp.grad_scaler import GradScaler

    scalers: Any = GradScaler
    original = scalers._maybe_opt_step

    def _maybe_opt_step(scaler: Any, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        adapter = seam.adapter
        seam.scaler = scaler
        found = not adapter.inert and bool(sum(one.item() for one in state["found_inf_per_device"].values()))
        result = original(scaler, optimizer, state, *args, **kwargs)
        if found:
            adapter.guarded("at a skipped update", seam.skipped, optimizer)
        return result

    scalers._maybe_opt_step = _maybe_opt_step

    def undo() -> None:
        if scalers._maybe_opt_step is _maybe_opt_step:
            scalers._maybe_opt_step = original

    return undo
