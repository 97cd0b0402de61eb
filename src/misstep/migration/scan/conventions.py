"""What is not a computation and so cannot be executed side by side: how a network is asked for its parameters, how a
seed is set, where a tensor lives. Each says the same thing in MindSpore's words, or that there is nothing to say.

In a template `{self}` is what a method is called on, `{0}` the first argument, `{rest}` all of them as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass

_MODULE = "torch.nn.Module"


@dataclass(frozen=True, slots=True)
class Convention:
    """A template to write; `drop` leaves the whole statement out; neither: it stays for a human, with the reason."""

    template: str = ""
    drop: bool = False
    reason: str = ""
    """Which sentence says why (see `sentences/migration.py`)."""
    least: int = 0
    """Arguments the template needs."""


_SAME = Convention("{self}")

CONVENTIONS: dict[str, Convention] = {
    f"{_MODULE}.parameters": Convention("{self}.trainable_params()"),
    f"{_MODULE}.named_parameters": Convention("{self}.parameters_and_names()"),
    f"{_MODULE}.modules": Convention("[cell for _, cell in {self}.cells_and_names()]"),
    f"{_MODULE}.named_modules": Convention("{self}.cells_and_names()"),
    f"{_MODULE}.children": Convention("{self}.cells()"),
    f"{_MODULE}.named_children": Convention("{self}.name_cells().items()"),
    f"{_MODULE}.train": Convention("{self}.set_train({rest})"),
    f"{_MODULE}.eval": Convention("{self}.set_train(False)"),
    **{f"{_MODULE}.{word}": _SAME for word in ("to", "cuda", "cpu")},
    f"{_MODULE}.float": Convention("{self}.to_float(mindspore.float32)"),
    f"{_MODULE}.half": Convention("{self}.to_float(mindspore.float16)"),
    f"{_MODULE}.state_dict": Convention("{self}.parameters_dict()"),
    f"{_MODULE}.load_state_dict": Convention("mindspore.load_param_into_net({self}, {0})", least=1),
    f"{_MODULE}.apply": Convention("{self}.apply({rest})"),
    f"{_MODULE}.zero_grad": Convention(drop=True),
    f"{_MODULE}.register_buffer": Convention("{self}.register_buffer({rest})"),
    f"{_MODULE}.add_module": Convention("{self}.insert_child_to_cell({rest})"),
    f"{_MODULE}.register_module": Convention("{self}.insert_child_to_cell({rest})"),
    f"{_MODULE}.__init__": Convention("{self}.__init__({rest})"),
    "torch.optim.Optimizer.zero_grad": Convention(drop=True),
    "torch.optim.Optimizer.step": Convention(reason="outside_loop"),
    "torch.optim.lr_scheduler.LRScheduler.step": Convention("{self}.step({rest})"),
    "torch.optim.lr_scheduler.LRScheduler.get_last_lr": Convention("{self}.get_last_lr()"),
    "torch.Tensor.backward": Convention(reason="outside_loop"),
    "torch.Tensor.requires_grad_": Convention("{self}"),
    **{f"torch.Tensor.{word}": _SAME for word in ("cpu", "cuda", "pin_memory", "share_memory_")},
    "torch.nn.Parameter": Convention("mindspore.Parameter({rest})", least=1),
    "torch.nn.parameter.Parameter": Convention("mindspore.Parameter({rest})", least=1),
    "torch.nn.ModuleList": Convention("mindspore.nn.CellList({rest})"),
    "torch.nn.ModuleDict": Convention("mindspore.nn.CellDict({rest})"),
    "torch.nn.ParameterList": Convention("mindspore.ParameterTuple({rest})"),
    "torch.manual_seed": Convention("mindspore.set_seed({0})", least=1),
    "torch.cuda.manual_seed": Convention(drop=True),
    "torch.cuda.manual_seed_all": Convention(drop=True),
    "torch.set_num_threads": Convention(drop=True),
    "torch.cuda.is_available": Convention("False"),
    "torch.cuda.empty_cache": Convention(drop=True),
    "torch.cuda.synchronize": Convention(drop=True),
    "torch.device": Convention("{0}", least=1),
    "torch.no_grad": Convention("contextlib.nullcontext()"),
    "torch.inference_mode": Convention("contextlib.nullcontext()"),
    "torch.enable_grad": Convention("contextlib.nullcontext()"),
    "torch.save": Convention("mindspore.save_checkpoint({rest})", least=2),
    "torch.load": Convention("mindspore.load_checkpoint({0})", least=1),
    "torch.nn.utils.clip_grad_norm_": Convention(reason="outside_loop"),
    "torch.nn.utils.clip_grad_value_": Convention(reason="outside_loop"),
    "torch.utils.data.DataLoader": Convention(reason="data_loader"),
    "torch.nn.init.kaiming_normal_": Convention(
        "{0}.set_data(mindspore.common.initializer.initializer("
        "mindspore.common.initializer.HeNormal(), {0}.shape, {0}.dtype))",
        least=1,
        reason="initializer",
    ),
    "torch.nn.init.zeros_": Convention(
        "{0}.set_data(mindspore.common.initializer.initializer('zeros', {0}.shape, {0}.dtype))", least=1
    ),
    "torch.nn.init.ones_": Convention(
        "{0}.set_data(mindspore.common.initializer.initializer('ones', {0}.shape, {0}.dtype))", least=1
    ),
    "torch.nn.init.constant_": Convention(
        "{0}.set_data(mindspore.common.initializer.initializer({1}, {0}.shape, {0}.dtype))", least=2
    ),
    "torch.nn.init.xavier_uniform_": Convention(
        "{0}.set_data(mindspore.common.initializer.initializer("
        "mindspore.common.initializer.XavierUniform(), {0}.shape, {0}.dtype))",
        least=1,
        reason="initializer",
    ),
}

VALUES: dict[str, str] = {
    **{
        f"torch.{word}": f"mindspore.{word}"
        for word in ("float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8")
    },
    "torch.bool": "mindspore.bool_",
    "torch.float": "mindspore.float32",
    "torch.half": "mindspore.float16",
    "torch.double": "mindspore.float64",
    "torch.long": "mindspore.int64",
    "torch.int": "mindspore.int32",
    "torch.Tensor": "mindspore.Tensor",
    "torch.nn.Module": "mindspore.nn.Cell",
    "torch.nn.Parameter": "mindspore.Parameter",
    "torch.nn.Sequential": "mindspore.nn.SequentialCell",
    "torch.nn.ModuleList": "mindspore.nn.CellList",
    "torch.utils.data.Dataset": "object",
    "torch.inf": "float('inf')",
    "torch.pi": "3.141592653589793",
}
"""Names that are used without being called."""
