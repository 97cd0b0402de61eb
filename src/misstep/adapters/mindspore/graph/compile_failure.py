"""A failure of MindSpore's compiler or of a kernel it looked for, as a place in the user's program and a way out.

MindSpore's message holds everything, in the middle of a hundred lines: "The Traceback of Net Construct Code" lists
frames from the outside in, "The Function Call Stack" from the inside out, and `analyze_fail.ir` marks the node that
could not be evaluated. What is taken from them is the innermost line of the user's own, the node, the first sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from misstep.adapters.source import source_line
from misstep.core.finding import Finding
from misstep.core.graph import Source
from misstep.sentences import findings
from misstep.store.foreign.mindspore.graph import INSIDE_PACKAGE

_FRAME = re.compile(r"^[ #\d-]*In file (?P<file>.+?):(?P<line>\d+)", re.MULTILINE)
_SECTION = re.compile(r"^- (?P<title>The Traceback of Net Construct Code|The Function Call Stack)", re.MULTILINE)
_IR = re.compile(r"See file '(?P<path>[^']+)'")
_MARKED = re.compile(
    r"#-{8,}> (?P<depth>\d+)\s*\n\s*%\d+\((?P<node>[^)]*)\) = (?P<type>[^\s(]+)\(.*\n(?:\s*: \((?P<given>.*)\) -> )?"
)
_TENSOR = re.compile(r"Tensor\[(\w+)\]\]?, (\([\d, -]*\))")
_UNSUPPORTED = re.compile(r"Unsupported op \[(\w+)\]|[Kk]ernel (\w+) unregistered|(\w+) is not supported on CPU")


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """What the compiler stumbled over."""

    reason: str
    """The first sentence of the message."""
    source: Source | None = None
    """The innermost line that is the user's own."""
    node: str = ""
    operator: str = ""
    """The operator that has no kernel here, when that is the reason."""

    @property
    def finding(self) -> Finding:
        node = findings.NODE.of(node=self.node) if self.node else ""
        evidence = tuple(part for part in (self.reason, node) if part)
        if self.operator:
            title = findings.NO_KERNEL.of(operator=self.operator)
            if self.source is not None:
                title = findings.NO_KERNEL_AT.of(operator=self.operator, source=self.source)
            return Finding(
                rule="mindspore.missing_kernel",
                title=title,
                severity="error",
                evidence=evidence,
                advice=findings.INSTEAD.get(self.operator, findings.REPLACE_IT).of(),
            )
        where = self.source
        return Finding(
            rule="mindspore.compile",
            title=findings.NOT_COMPILED.of() if where is None else findings.NOT_COMPILED_AT.of(source=where),
            severity="error",
            evidence=evidence,
            advice=findings.GRAPH_IS_LESS.of(),
        )


def compile_failure(error: BaseException) -> CompileFailure | None:
    """The failure behind an exception of MindSpore; None for any other exception.

    >>> compile_failure(error).source
    Source(file='train.py', line=18, code='return self.fc2(x)')
    """
    text = str(error)
    section = _SECTION.search(text)
    unsupported = _UNSUPPORTED.search(text)
    if section is None and unsupported is None:
        return None
    frames = [(one["file"], int(one["line"])) for one in _FRAME.finditer(text, section.end() if section else len(text))]
    own = [frame for frame in frames if not INSIDE_PACKAGE.search(frame[0])]
    source = None
    if own and section is not None:
        source = source_line(*(own[-1] if "Traceback" in section["title"] else own[0]))
    operator = next((group for group in unsupported.groups() if group), "") if unsupported else ""
    return CompileFailure(_reason(text), source, _marked_node(text), operator)


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(("-", "#", "In file", "mindspore/"))]
    return said[0][:300] if said else ""


def _marked_node(text: str) -> str:
    """The node analyze_fail.ir marks last, with what it was given: `x = matmul(Float32 (4, 16), Float32 (4, 15))`."""
    named = _IR.search(text)
    if named is None:
        return ""
    try:
        ir = Path(named["path"]).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    marks = list(_MARKED.finditer(ir))
    if not marks:
        return ""
    last = max(marks, key=lambda one: int(one["depth"]))
    given = ", ".join(f"{dtype} {shape}" for dtype, shape in _TENSOR.findall(last["given"] or ""))
    return f"{last['node']} = {_called(last, ir)}({given})"


def _called(mark: re.Match[str], ir: str) -> str:
    """What the node calls; `%1` is a name looked up a few lines above it."""
    kind = mark["type"].removeprefix("PrimFunc_")
    if not kind.startswith("%"):
        return kind
    begin = ir.rfind("subgraph @", 0, mark.start())
    found = re.findall(rf"^\s*{kind}\([^)]*\) = \w+\(.*?([\w.]+)\"?\)\s*$", ir[begin : mark.start()], re.MULTILINE)
    return str(found[-1]) if found else kind
