"""The values of a trial inside its own process; imports nothing heavy, for it runs in the user's training.

    from misstep.tuning import HyperConfig
    params = HyperConfig(learning_rate=0.1).params          # 0.1 when the script is run by itself
    optimizer = torch.optim.SGD(net.parameters(), lr=params.learning_rate)

The variable is MindOptimizer's own, so its scripts and MindSpore's SummaryCollector find what they expect.
"""

from __future__ import annotations

import json
import os
from typing import Any

VARIABLE = "MINDINSIGHT_HYPER_CONFIG"
CHECKPOINTS_VARIABLE = "MISSTEP_CHECKPOINTS"
TRIAL_VARIABLE = "MISSTEP_TRIAL"


class Parameters(dict[str, Any]):
    """Values by name, also as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"no parameter {name!r}; there are: {', '.join(self) or 'none'}. Give it a default:"
                f"  HyperConfig({name}=...)"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class HyperConfig:
    """What this trial was given; the defaults when the script runs by itself."""

    def __init__(self, **defaults: Any) -> None:
        plain = json.loads(os.environ.get(VARIABLE) or "{}")
        self.params = Parameters({**defaults, **plain.get("params", {})})
        self.summary_dir: str = os.path.realpath(plain.get("summary_dir") or "summary")
        self.custom_lineage_data: dict[str, Any] = plain.get("custom_lineage_data") or {}

    @property
    def checkpoint_dir(self) -> str:
        """Where this trial keeps its checkpoints: the same folder when it is run again."""
        return os.environ.get(CHECKPOINTS_VARIABLE) or "checkpoints"
