"""How MindSpore's names are said in one file, and the imports that takes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from misstep.diagnosis.lint.source import Source
from misstep.migration.scan.page import Page

_HOMES = {
    "mindspore.experimental.optim": "optim",
    "mindspore.nn": "nn",
    "mindspore.ops": "ops",
    "mindspore.mint": "mint",
}


@dataclass(slots=True)
class Spelling:
    """The names used so far; what the file itself calls `nn` or `ops` is left to it."""

    taken: frozenset[str]
    used: set[str] = field(default_factory=set)

    def __call__(self, dotted: str) -> str:
        if not dotted.startswith("mindspore."):
            if dotted.partition(".")[0] == "contextlib":
                self.used.add("contextlib")
            return dotted
        for home, alias in _HOMES.items():
            if dotted.startswith(f"{home}.") and alias not in self.taken:
                self.used.add(home)
                return f"{alias}{dotted.removeprefix(home)}"
        self.used.add("mindspore.dataset" if dotted.startswith("mindspore.dataset.") else "mindspore")
        return dotted

    def imports(self) -> list[str]:
        """The lines to import them with."""
        lines = ["import contextlib"] if "contextlib" in self.used else []
        if "mindspore" in self.used:
            lines.append("import mindspore")
        if "mindspore.dataset" in self.used:
            lines.append("import mindspore.dataset")
        plain = sorted(
            one.removeprefix("mindspore.") for one in self.used & set(_HOMES) - {"mindspore.experimental.optim"}
        )
        if plain:
            lines.append(f"from mindspore import {', '.join(plain)}")
        if "mindspore.experimental.optim" in self.used:
            lines.append("from mindspore.experimental import optim")
        return lines


def taken_names(source: Source) -> frozenset[str]:
    """What the file binds by itself, imports of PyTorch aside."""
    found: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
    return frozenset(found | {name for name, dotted in source.imports.items() if dotted.partition(".")[0] != "torch"})


def edit_imports(source: Source, page: Page, spelling: Spelling, *, keep: bool) -> None:
    """Put MindSpore's imports where PyTorch's first stood, and take those out; `keep` leaves `import torch` for what
    stays, which is spelled in full."""
    first = True
    for node in source.nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom) or not _of_torch(node):
            continue
        start, end = page.lines[node.lineno - 1] + node.col_offset, page.span(node)[1]
        others = [one for one in node.names if not _torch(one.name)] if isinstance(node, ast.Import) else []
        top = node.col_offset == 0
        kept = ["import torch"] if keep and first else []
        if others:
            kept.append("import " + ", ".join(page.original(*page.span(one)) for one in others))
        lines = [*kept, *(spelling.imports() if first and top else [])]
        first = first and not top
        if not lines and not top:
            lines = ["pass"]
        if not lines and page.data[end : end + 1] == b"\n":
            end += 1
        page.change(start, end, "\n".join(lines))


def _of_torch(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and _torch(node.module or "")
    return any(_torch(one.name) for one in node.names)


def _torch(name: str) -> bool:
    return name.partition(".")[0] == "torch"
