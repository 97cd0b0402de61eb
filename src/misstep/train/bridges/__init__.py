"""misstep in other people's training loops: one callback each for Lightning, Hugging Face, Keras and MindSpore.

    from misstep.train.bridges import LightningBridge
    Trainer(callbacks=[LightningBridge(callbacks=[LossMonitor()])]).fit(model, data)

A bridge watches the training (a run directory, watchpoints, a verdict), and runs callbacks of misstep.train there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misstep.train.bridges.huggingface import HuggingFaceBridge
    from misstep.train.bridges.keras import KerasBridge
    from misstep.train.bridges.lightning import LightningBridge
    from misstep.train.bridges.mindspore import MindSporeBridge

__all__ = ["HuggingFaceBridge", "KerasBridge", "LightningBridge", "MindSporeBridge"]

_HOMES = {name: f"misstep.train.bridges.{name.removesuffix('Bridge').lower()}" for name in __all__}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'misstep.train.bridges' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
