"""`set_context` on torch: eager or compiled, where graphs are written, threads and determinism."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn

from misstep.errors import SettingError
from misstep.train import context


def apply(settings: Mapping[str, Any]) -> None:
    """Tell torch what was just set."""
    if "mode" in settings:
        # Also what the program itself wrapped in torch.compile runs eagerly then, so a debugger can step through it.
        torch.compiler.set_stance("force_eager" if settings["mode"] == context.PYNATIVE_MODE else "default")
    if "device_target" in settings or "device_id" in settings:
        _use_device(context.get_context("device_target"), context.get_context("device_id"))
    if "deterministic" in settings:
        torch.use_deterministic_algorithms(settings["deterministic"] == "ON")
    if settings.get("runtime_num_threads"):
        torch.set_num_threads(settings["runtime_num_threads"])


def compile_network(network: nn.Module) -> None:
    """In graph mode, let this network run compiled from its next call on; its names and weights stay as they are."""
    if not context.is_set("mode") or context.get_context("mode") != context.GRAPH_MODE:
        return
    level = context.get_context("jit_level") or "O1"
    options: dict[str, Any] = {"mode": "max-autotune-no-cudagraphs"} if level == "O2" else {}
    backend: Any = "aot_eager" if level == "O0" else "inductor"
    if context.get_context("save_graphs"):
        options, backend = {}, _saving(backend)  # a backend of one's own takes no mode

    def call(*args: Any, **kwargs: Any) -> Any:
        return network._call_impl(*args, **kwargs)

    # What network.compile() does, but for this function: torch skips code of its own, and so a network that is one of
    # its own classes (a Sequential, a lone layer) would silently run eagerly.
    network._compiled_call_impl = torch.compile(call, backend=backend, **options)


def _saving(backend: str) -> Any:
    from torch._dynamo.backends.registry import lookup_backend

    compile_graph = lookup_backend(backend)

    def save_and_compile(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        rank = os.environ.get("RANK_ID", os.environ.get("RANK", "0"))
        folder = Path(context.get_context("save_graphs_path")) / f"rank_{rank}" / "graphs"
        folder.mkdir(parents=True, exist_ok=True)
        text = graph.print_readable(print_output=False)
        (folder / f"graph_{next(_graphs)}.py").write_text(text, encoding="utf-8")
        return compile_graph(graph, inputs)

    return save_and_compile


_graphs = count()


def _use_device(target: str, number: int) -> None:
    if target == "CPU":
        torch.set_default_device(None)
    elif target == "GPU" and torch.cuda.is_available():
        torch.set_default_device(f"cuda:{number}")
    else:
        raise SettingError(f"set_context: torch sees no {target} here; leave device_target out, or set it to 'CPU'")
