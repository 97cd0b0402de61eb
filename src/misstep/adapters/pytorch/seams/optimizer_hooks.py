"""Hooks before and after every optimizer's step, which can be taken out at any moment, also from inside of one.

torch goes through its dictionary of hooks while it calls them: to remove one then would end the user's program with
"OrderedDict mutated during iteration". A hook taken out in the middle of a step is emptied, and removed the next time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

Hook = Callable[[Optimizer, Any, Any], Any]

_TORCH = sys.modules[Optimizer.__module__].__file__
_emptied: list[Any] = []
"""Handles of hooks that do nothing any more."""


def around_steps(before: Hook, after: Hook) -> Callable[[], None]:
    """Call these around every optimizer's step; what is returned takes them out."""
    handles = [register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)]

    def remove() -> None:
        _emptied.extend(handles)
        handles.clear()
        if _inside_a_step():
            for handle in _emptied:
                hooks = handle.hooks_dict_ref()
                if hooks is not None and handle.id in hooks:
                    hooks[handle.id] = _nothing
        else:
            while _emptied:
                _emptied.pop().remove()

    return remove


def _nothing(*given: Any) -> None:
    return None


def _inside_a_step() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _TORCH and frame.f_code.co_name == "wrapper":
            return True
        frame = frame.f_back
    return False
