"""What `misstep profile` says at the terminal, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_PROFILE = Text(
    "Show which operators take the time in a few steps.\n\n"
    "COMMAND is run until the last of the --steps, which run under the framework's own profiler; the others cost"
    " nothing. The table has a row for each operator with its shapes, types, module and source line, those of backward"
    " at the forward call they belong to. With the name of a run, shows its profile again.",
    "说明若干轮次的时间花在哪些算子上。\n\n"
    "COMMAND 会运行到 --steps 的最后一个轮次为止，这些轮次在框架自带的 profiler 下运行，其余轮次没有额外开销。"
    "表中每行是一个算子及其形状、类型、模块和代码行；反向算子归到对应的前向调用。给出训练名称时，再次显示其性能剖析数据。",
)
HELP_STEPS = Text("Steps to profile, such as 5:8.", "要剖析的轮次，如 5:8。")
HELP_DIFF = Text("Compare with the profile of this run, operator by operator.", "与该训练的性能剖析数据逐算子对比。")
HELP_EXPORT = Text(
    "Write all ranks' profiles into this file, for Perfetto or chrome://tracing.",
    "将各卡的性能剖析数据写入该文件，供 Perfetto 或 chrome://tracing 打开。",
)
HELP_REPRODUCE = Text(
    "Print a script that makes the call of this row again, by itself.",
    "输出一个脚本，单独重新执行该行的调用。",
)
HELP_RANK = Text("Of this rank; the first unless given.", "查看该卡；默认第一张。")
HELP_MOST = Text("Rows to show.", "显示的行数。")
SUMMARY = Text(
    "{run}: {steps:count} profiled {steps:plural step|steps}, {ms:.2f} ms each in operators ({wall:.2f} ms with the"
    " profiler and all else)",
    "{run}：剖析了 {steps:count} 个轮次，每个轮次算子耗时 {ms:.2f} ms（连同 profiler 与其他共 {wall:.2f} ms）",
)
PHASES: dict[str, Text] = {
    "forward": Text("forward", "前向"),
    "backward": Text("backward", "反向"),
    "optimizer": Text("optimizer", "优化器"),
    "": Text("other", "其他"),
}
COLUMN_SHARE = Text("self", "自身")
COLUMN_CALLS = Text("calls a step", "每轮次调用")
COLUMN_OPERATOR = Text("operator", "算子")
COLUMN_SHAPES = Text("shapes", "形状")
COLUMN_WHERE = Text("module, line", "模块、代码行")
CONVERSIONS = Text(
    "conversions and copies take {share:.0%} of operator time: look for .to(), .float(), .contiguous()",
    "类型转换与拷贝占算子时间的 {share:.0%}：请查找 .to()、.float()、.contiguous()",
)
TINY = Text(
    "{share:.0%} of operator time is in calls below 20 µs ({calls:.0f} a step): larger batches or compiling may help;"
    " measure it:  misstep advise {run} --try compile=True",
    "{share:.0%} 的算子时间花在 20 µs 以下的调用上（每轮次 {calls:.0f} 次）：更大的 batch size 或编译可能有帮助；"
    "实测：  misstep advise {run} --try compile=True",
)
RATE = Text("{gflops:.1f} GFLOP/s", "{gflops:.1f} GFLOP/s")
COMPARED = Text("{left} → {right}, µs a step", "{left} → {right}，每轮次 µs")
SAME_TIME = Text(
    "operators take {before:.0f} µs a step, then {after:.0f} µs",
    "算子每轮次耗时 {before:.0f} µs，之后为 {after:.0f} µs",
)
EXPORTED = Text(
    "wrote {events:count} events to {path}; open it at ui.perfetto.dev",
    "已将 {events:count} 个事件写入 {path}；可用 ui.perfetto.dev 打开",
)
NOT_PROFILED = Text(
    "no step was profiled: the training ended before step {first}, or its framework has no profiler here",
    "没有剖析任何轮次：训练在轮次 {first} 之前结束，或其框架在此没有 profiler",
)
BAD_STEPS = Text("--steps {steps} is not FIRST:AFTER, such as 5:8", "--steps {steps} 不是 起:止 的形式，例如 5:8")
NO_ROW = Text("there is no row {row}; the table has {rows}", "没有第 {row} 行；表中共 {rows} 行")
