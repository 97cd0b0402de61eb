"""What can be asked of MindSpore at any time: weights and buffers by name, values, versions, ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.names import OPTIMIZERS, Names


class Facts:
    """The part of the adapter that only answers."""

    names: Names

    def parameters(self) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for owner in (*self.names.networks(), *self.names.optimizers()):
            own = owner.parameters if isinstance(owner, OPTIMIZERS) else owner.trainable_params()
            for parameter in own:
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield self.names.parameter(parameter), parameter

    def buffers(self) -> Iterator[tuple[str, Any]]:
        for root in self.names.networks():
            for parameter in root.untrainable_params():
                yield self.names.parameter(parameter), parameter

    def array(self, tensor: Any) -> NDArray[Any]:
        return tensors.array(tensor)

    def dtype_name(self, tensor: Any) -> str:
        return tensors.dtype_name(tensor)

    def versions(self) -> dict[str, str]:
        return {"mindspore": str(ms.__version__), "numpy": np.__version__}

    def rank(self) -> tuple[int, int]:
        communication = sys.modules.get("mindspore.communication.management")
        if communication is not None and communication.GlobalComm.INITED:
            return int(communication.get_rank()), int(communication.get_group_size())
        workers = os.environ.get("MS_WORKER_NUM") or os.environ.get("RANK_SIZE") or "1"
        return int(os.environ.get("RANK_ID") or os.environ.get("MS_NODE_ID") or 0), int(workers)
