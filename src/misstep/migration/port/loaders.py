"""`DataLoader(dataset, batch_size=…)` as `GeneratorDataset(dataset, columns).batch(…)`."""

from __future__ import annotations

import ast

from misstep.diagnosis.lint.source import Source
from misstep.migration.port.structure import Mark
from misstep.migration.scan.judge import literal_of
from misstep.migration.scan.page import Page
from misstep.migration.scan.reading import Reading
from misstep.migration.scan.writing import Spell

_SILENT = ("pin_memory", "persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context")
_KNOWN = ("dataset", "batch_size", "shuffle", "num_workers", "drop_last", "sampler", *_SILENT)
_USUAL = ("data", "label")


def edit_loaders(source: Source, reading: Reading, page: Page, spell: Spell, mark: Mark) -> set[ast.AST]:
    handled: set[ast.AST] = set()
    for called in reading.calls:
        node = called.node
        if not called.name.startswith("torch.utils.data.") or not isinstance(node, ast.Call):
            continue
        if called.name == "torch.utils.data.DataLoader":
            handled.add(node)
            _edit(node, source, page, spell, mark)
        elif called.name == "torch.utils.data.TensorDataset":
            handled.add(node)
            inside = page.call_parens(node)
            page.change(page.span(node)[0], inside[0], "list(zip(")
            page.change(inside[1], inside[1], ")")
    return handled


def _edit(node: ast.Call, source: Source, page: Page, spell: Spell, mark: Mark) -> None:
    given = {one.arg: one.value for one in node.keywords if one.arg}
    given.update(zip(("dataset", "batch_size", "shuffle"), node.args))
    unknown = [key for key in given if key not in _KNOWN]
    if unknown or any(one.arg is None for one in node.keywords) or "dataset" not in given or "sampler" in given:
        mark(node, "torch.utils.data.DataLoader", "absent", ", ".join(unknown or ["**", "sampler"][:1]))
        return
    count = _columns(given["dataset"], source)
    if count is None:
        mark(node, "torch.utils.data.DataLoader", "columns", "")
        return
    columns = list(_USUAL[:count]) if count <= 2 else [f"column{at}" for at in range(count)]

    def written() -> str:
        words = [page.of(given["dataset"]), repr(columns)]
        words.append(f"shuffle={page.of(given['shuffle'])}" if "shuffle" in given else "shuffle=False")
        workers = literal_of(given["num_workers"]) if "num_workers" in given else 0
        if workers != 0 and "num_workers" in given:
            words.append(f"num_parallel_workers={page.of(given['num_workers'])}")
        batch = [page.of(given["batch_size"]) if "batch_size" in given else "1"]
        if "drop_last" in given:
            batch.append(f"drop_remainder={page.of(given['drop_last'])}")
        return f"{spell('mindspore.dataset.GeneratorDataset')}({', '.join(words)}).batch({', '.join(batch)})"

    page.change(*page.span(node), written)


def _columns(node: ast.expr, source: Source) -> int | None:
    """How many columns a dataset of the project has: what its `__getitem__` returns."""
    value = source.value_of(node)
    if not isinstance(value, ast.Call):
        return None
    name = source.called(value)
    if name.endswith("TensorDataset"):
        return len(value.args)
    for one in source.nodes:
        if isinstance(one, ast.ClassDef) and one.name == name.rpartition(".")[2]:
            for item in one.body:
                if isinstance(item, ast.FunctionDef) and item.name == "__getitem__":
                    returns = [each.value for each in ast.walk(item) if isinstance(each, ast.Return)]
                    sizes = {len(each.elts) if isinstance(each, ast.Tuple) else 1 for each in returns}
                    return sizes.pop() if len(sizes) == 1 else None
    return None
