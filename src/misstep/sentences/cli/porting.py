"""What the commands scan, port and determinism say, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_SCAN = Text(
    "List every call of a framework in a source, and what it is in the other.\n\n"
    "PATHS are Python files or folders; nothing is executed. Names are followed through imports, aliases, chained calls"
    " and tensor methods. Each call is equivalent, differs (with the rewrite), none, or uncertain with the reason."
    " Exit code 3 when a call has no certain counterpart.",
    "列出源码中对某框架的每个调用，以及它在另一框架中的写法。\n\n"
    "PATHS 为 Python 文件或文件夹；不执行任何代码。名称会沿 import、别名、链式调用和张量方法解析。"
    "每个调用为 equivalent（等价）、differs（有差异，并给出改写）、none（无对应）或 uncertain（不确定，并说明原因）。"
    "有调用没有确定的对应时退出码为 3。",
)
HELP_TO = Text("The framework to move to.", "要迁移到的框架。")
HELP_FORMAT = Text(
    "text, json, csv, sarif (for code hosts) or html (one page).",
    "text、json、csv、sarif（供代码托管平台使用）或 html（单个页面）。",
)
HELP_ALL = Text("List equivalent calls too.", "同时列出等价的调用。")
HELP_OUT_FILE = Text("Write there instead of to the terminal.", "写入该文件，而不是终端。")
SCAN_TOTALS = Text(
    "{files:count} {files:plural file|files}, {calls} calls, {resolved} resolved; of {rows} calls of {framework}:"
    " {equivalent} equivalent, {differs} differ, {none} have no counterpart, {uncertain} are uncertain",
    "{files:count} 个文件，{calls} 个调用，已解析 {resolved}；其中 {framework} 的 {rows} 个调用："
    "{equivalent} 个等价，{differs} 个有差异，{none} 个无对应，{uncertain} 个不确定",
)
SCAN_UNRESOLVED = Text("not resolved: {path}:{line} {code}", "未解析：{path}:{line} {code}")
SCAN_MAP = Text(
    "the map holds for PyTorch {torch} and MindSpore {mindspore} on the CPU, in PyNative mode",
    "映射表适用于 PyTorch {torch} 与 MindSpore {mindspore}（CPU，PyNative 模式）",
)
VERDICTS: dict[str, Text] = {
    "equivalent": Text("equivalent", "等价"),
    "differs": Text("differs", "有差异"),
    "none": Text("none", "无对应"),
    "uncertain": Text("uncertain", "不确定"),
}
COLUMN_CALL = Text("call", "调用")
COLUMN_BECOMES = Text("becomes", "改写为")
COLUMN_WHY = Text("why", "原因")

ABOUT_PORT = Text(
    "Write a PyTorch source anew for MindSpore, and check that it computes the same.\n\n"
    "SRC is a file, a function in a file (model.py:build) or a folder. Comments and formatting stay. A call without a"
    " certain counterpart stays as it is, with the reason in the line above. The result is imported in a process of its"
    " own; with --data it is checked against the original, as `misstep migrate check` does. Files are written whole or"
    " not at all, and never over your own. Exit code 3 when something is left to you.",
    "把 PyTorch 源码改写为 MindSpore，并检查计算结果是否相同。\n\n"
    "SRC 可以是文件、文件中的函数（model.py:build）或文件夹。注释与格式保持不变。没有确定对应的调用保持原样，"
    "原因写在其上一行。结果会在单独的进程中导入；给出 --data 时会像 `misstep migrate check` 一样与原始网络比对。"
    "文件要么完整写出，要么不写，且不会覆盖您自己的文件。有内容需要人工处理时退出码为 3。",
)
HELP_OUT_DIR = Text(
    "Write into this folder; otherwise beside the source, as NAME_mindspore.",
    "写入该文件夹；否则写在源码旁，名为 NAME_mindspore。",
)
HELP_PORT_DATA = Text(
    "A batch (.npz) to check the result with, as in `misstep migrate check`.",
    "用于检查结果的一批数据（.npz），与 `misstep migrate check` 相同。",
)
HELP_NO_TRY = Text("Neither import nor check what was written.", "不导入也不检查写出的文件。")
HELP_CALLS = Text("List every call that was written anew, with its proof.", "列出每个改写的调用及其依据。")
PORTED = Text(
    "{target}: {done} of {lines} lines done, {left} left to you; {proven} of {calls} calls were executed beside the"
    " original",
    "{target}：{lines} 行中已完成 {done}，需人工处理 {left} 行；{calls} 个调用中有 {proven} 与原始接口并行执行验证过",
)
PORT_LEFT = Text("line {line}: {name} stays: {why}", "第 {line} 行：{name} 保持原样：{why}")
PORT_HAZARD = Text("graph mode, line {line}: {message}", "图模式，第 {line} 行：{message}")
PORT_CALL = Text(
    "line {line}: {name} → {target} ({executed} samples came out the same)",
    "第 {line} 行：{name} → {target}（{executed} 个样例结果相同）",
)
PORT_CONVENTION = Text("line {line}: {name} → {target} (no computation)", "第 {line} 行：{name} → {target}（不是计算）")
PORT_IMPORTED = Text(
    "imported; not checked: pass --data batch.npz to compare it with the original",
    "可以导入；未检查：请用 --data batch.npz 与原始网络比对",
)
PORT_NOT_IMPORTED = Text("it cannot be imported: {why}", "无法导入：{why}")
PORT_NOT_TRIED = Text("neither imported nor checked", "未导入也未检查")
PORT_SAME = Text("checked: the same in {stages}", "已检查：{stages} 均相同")
PORT_DIFFERS = Text(
    "checked: it differs in {stage}; see `misstep migrate check --torch {left} --mindspore {right} --data {data}`",
    "已检查：{stage} 有差异；详见 `misstep migrate check --torch {left} --mindspore {right} --data {data}`",
)
PORT_COPIED = Text(
    "{count:count} {count:plural file|files} without PyTorch copied", "复制了 {count:count} 个不含 PyTorch 的文件"
)

ABOUT_DETERMINISM = Text(
    "Run a command twice and say whether it does the same, and if not, why.\n\n"
    "Initial weights, inputs, every operator of the first two steps, and gradients are compared bit for bit; then two"
    " thread counts. The first difference names its source: a seed, the shuffle, data workers, dropout, the order of a"
    " set, the number of threads, or an operator with its line. PyTorch only. Exit code 3 when something is not fixed.",
    "把命令运行两次，说明结果是否相同；不同时说明原因。\n\n"
    "逐位比较初始权重、输入、前两个轮次的每个算子以及梯度；然后比较两种线程数。第一处差异会指出来源："
    "种子、打乱顺序、数据进程、dropout、集合顺序、线程数，或某个算子及其代码行。"
    "仅支持 PyTorch。结果不可复现时退出码为 3。",
)
HELP_NO_THREADS = Text("Do not run it with other thread counts.", "不使用其他线程数运行。")
DETERMINED = Text(
    "deterministic: weights, inputs, {operations} operators and gradients of {steps:count} {steps:plural step|steps}"
    " are the same in {runs} runs",
    "可复现：{runs} 次运行中，权重、输入、{steps:count} 个轮次的 {operations} 个算子和梯度均相同",
)
THREADS_NOT_TRIED = Text("other thread counts were not tried", "未尝试其他线程数")
NOT_DETERMINED = Text("not deterministic: {why}", "不可复现：{why}")
STAGE_FIXED = Text("{stage}: fixed", "{stage}：固定")
STAGE_OPEN = Text("{stage}: not fixed", "{stage}：未固定")
STAGE_NAMES: dict[str, Text] = {
    "weights": Text("initial weights", "初始权重"),
    "inputs": Text("inputs", "输入"),
    "forward": Text("forward", "前向"),
    "backward": Text("backward", "反向"),
}
