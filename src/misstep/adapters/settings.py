"""How a module, an optimizer or a call was set up: the plain values beside its tensors (eps, slope, momentum, padding).

    settings_of(nn.BatchNorm2d(8))        {"num_features": "8", "eps": "1e-05", "momentum": "0.1", …}
    arguments_of((x, 0.2), {})            {"1": "0.2"}

Read once, when a node is first met, from public attributes that are numbers, words or short rows of them; a property is
never run and no framework is imported. Two runs are compared by these as they are by their tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MOST = 24
_LONGEST = 80
_SKIPPED = frozenset(
    ["training", "cell_type", "instance_name", "param_prefix", "bprop_debug", "jit_config_dict", "pynative",
     "cell_init_args", "param_groups", "defaults", "state", "call_super_init", "dump_patches", "requires_grad",
     "compile_cache", "saved_dynamic_shape", "input_kwargs", "exist_names", "exist_objs", "enable_forward_pre_hook",
     "enable_forward_hook", "enable_backward_hook", "mixed_precision_type", "is_top_cell", "has_mindspore_saved_hooks",
     "grad_ops_label", "has_bprop", "enable_tuple_broaden",
     "skip_auto_parallel_compile", "optim_filter", "param_length", "param_rank"]
)  # fmt: skip
"""What a framework keeps on every module for itself."""


def settings_of(thing: object) -> dict[str, str]:
    """The plain public attributes of a module, cell or optimizer, as text."""
    found = vars(thing)
    groups = found.get("param_groups")
    if isinstance(groups, list) and groups and isinstance(groups[0], dict):
        return _texts((name, value) for name, value in groups[0].items() if name != "params")
    return _texts((name, value) for name, value in found.items() if not name.startswith("_") and name not in _SKIPPED)


def arguments_of(args: Iterable[Any], kwargs: Mapping[str, Any], names: Sequence[str] = ()) -> dict[str, str]:
    """The plain arguments of a call, by name where it is known: a slope, an axis, a probability."""
    placed = ((names[at] if at < len(names) else str(at), value) for at, value in enumerate(args))
    return _texts([*placed, *kwargs.items()])


def call_settings(operator: Any, args: Iterable[Any], kwargs: Mapping[str, Any]) -> dict[str, str]:
    """The plain arguments of an operator that knows its own schema."""
    return arguments_of(args, kwargs, [argument.name for argument in operator._schema.arguments])


def _texts(pairs: Iterable[tuple[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        text = _text(value)
        if text and len(found) < _MOST:
            found[name] = text
    return found


def _text(value: Any) -> str:
    if isinstance(value, tuple | list) and value and all(isinstance(one, bool | int | float | str) for one in value):
        text = "(" + ", ".join(map(_plain, value)) + ")"
        return text if len(text) <= _LONGEST else ""
    if value is None or isinstance(value, bool | int | float | str):
        return _plain(value) if not isinstance(value, str) or len(value) <= _LONGEST else ""
    return ""


def _plain(value: Any) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)
