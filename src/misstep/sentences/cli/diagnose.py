"""What the command `misstep diagnose` says, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_DIAGNOSE = Text(
    "Say why a run does not learn.\n\n"
    "RUN is a run, live or finished; the last one when none is named. Rules look at how it trains: optimizers,"
    " gradients, updates, the objective, activations, batches. Causes come first, what follows from them below. Nothing"
    " is run again. Exit code 3 on a finding of severity error.",
    "说明一次运行为什么学不到东西。\n\n"
    "RUN 为正在进行或已结束的运行；不指定时为最近一次。规则查看它如何训练：优化器、梯度、更新、目标、激活、批次。"
    "原因在前，由其引起的在后。不会重新运行任何内容。有错误级发现时退出码为 3。",
)
HELP_HTML = Text("Write the report as one HTML file.", "把报告写成一个 HTML 文件。")
HELP_RULES = Text("List the rules and end.", "列出全部规则后结束。")
HEALTHY = Text(
    "healthy: {rules} rules found nothing in {steps:count} {steps:plural step|steps} ({looks:count} looked at closely)",
    "健康：{rules} 条规则在 {steps:count} 个轮次中没有发现问题（其中 {looks:count} 个仔细查看过）",
)
NOT_KNOWN = Text(
    "nothing can be said: no facts were recorded; run it with misstep run at level guard or closer",
    "无法判断：没有记录事实；请用 misstep run 以 guard 或更高级别运行",
)
CAUSE = Text("{severity}, {confidence:.0%} sure", "{severity}，把握 {confidence:.0%}")
FIX = Text("fix: {advice:sentence}", "修改：{advice:sentence}")
CONSEQUENCES = Text("what follows from it", "由此引起")
EXPLAINED = Text("{title:sentence} — explained by {number}", "{title:sentence}（由 {number} 解释）")
HINTS = Text("hints", "提示")
NOT_CHECKED = Text("not checked", "未检查")
OF_FAMILY = Text("{family}: {missing:clauses}", "{family}：{missing:clauses}")
TOP = Text("{title:sentence}; {advice:sentence}", "{title:sentence}；{advice:sentence}")
TOP_AT = Text("{title:sentence} ({source}); {advice:sentence}", "{title:sentence}（{source}）；{advice:sentence}")
MORE = Text("why, and what else:  misstep diagnose {run}", "原因及其他发现：misstep diagnose {run}")
PICTURE_LOSS = Text("loss", "损失")
PICTURE_GRADIENTS = Text(
    "gradient over weight, from the input to the output, step {step} (logarithmic)",
    "轮次 {step} 各层梯度与权重之比，从输入到输出（对数）",
)
PICTURE_UPDATES = Text(
    "update over weight by layer, step {step} (logarithmic; red: does not move)",
    "轮次 {step} 各层更新与权重之比（对数；红色：不动）",
)
WROTE = Text("wrote {path}", "已写入 {path}")
CANNOT_WRITE = Text(
    "cannot write {path}: {why}; choose another file with --html", "无法写入 {path}：{why}；请用 --html 指定其他文件"
)
SEVERITIES: dict[str, Text] = {
    "error": Text("error", "错误"),
    "warning": Text("worth a look", "值得一看"),
    "info": Text("hint", "提示"),
}
