"""The report of a run that can be sent to somebody: its headings."""

from __future__ import annotations

from misstep.sentences.text import Text

TITLE = Text("Report of {run}", "训练 {run} 的报告")
BORN = Text("{kind} born in {node}: step {step}, {phase}", "{kind} 产生于 {node}：轮次 {step}，{phase}")
NOTHING = Text("Nothing bad is known of this run.", "未发现此训练有异常。")
CLEAN = Text("Every step was watched and none was bad.", "每个轮次均已检查，未发现异常。")
FOUND = Text("What else was found", "其他发现")
LOSS = Text("Loss", "损失")
LOSS_RANGE = Text(
    "{steps:count} steps, from {low:number} to {high:number}",
    "共 {steps:count} 个轮次，从 {low:number} 到 {high:number}",
)
LOSS_BAD = Text("{n:count} of them not finite", "其中 {n:count} 个非有限值")
FACTS = Text("What was run", "运行信息")
PARAMETERS = Text("Parameters", "参数")
NOTES = Text("Noted while recording", "记录期间的说明")
SAMPLES = Text("samples of the batch: {samples}", "批次中的样本：{samples}")
COMMAND = Text("command", "命令")
STARTED = Text("started", "开始时间")
STATE = Text("state", "状态")
HOST = Text("host", "主机")
VERSIONS = Text("versions", "版本")
TAGS = Text("tags", "标签")
NOTE = Text("note", "备注")
MADE = Text("written by misstep {version}", "由 misstep {version} 生成")
