"""The page that says why a run does not learn."""

from __future__ import annotations

from misstep.sentences.text import Text

WORDS: dict[str, Text] = {
    "diagnose.cause": Text("cause · {sure} % sure", "原因 · 把握 {sure} %"),
    "diagnose.look": Text("worth a look · {sure} % sure", "值得一看 · 把握 {sure} %"),
    "diagnose.consequence": Text("consequence of {cause}", "由 {cause} 引起"),
    "diagnose.hint": Text("hint", "提示"),
    "diagnose.fix": Text("Fix", "修改"),
    "diagnose.healthy": Text(
        "Healthy: {rules} rules found nothing in {steps} steps ({looks} looked at closely)",
        "健康：{rules} 条规则在 {steps} 个轮次中没有发现问题（其中 {looks} 个仔细查看过）",
    ),
    "diagnose.unknown": Text("Nothing can be said: no facts were recorded", "无法判断：没有记录事实"),
    "diagnose.gradients": Text("Gradient by depth", "各层梯度"),
    "diagnose.gradients.help": Text(
        "gradient over weight, from the input to the output (logarithmic)", "梯度与权重之比，从输入到输出（对数）"
    ),
    "diagnose.updates": Text("Update by layer", "各层更新"),
    "diagnose.updates.help": Text(
        "update over weight (logarithmic); red: does not move", "更新与权重之比（对数）；红色：不动"
    ),
    "diagnose.loss": Text("Loss", "损失"),
    "diagnose.checked": Text("What was checked", "检查内容"),
    "diagnose.fine": Text("fine", "正常"),
    "diagnose.partly": Text("not all seen", "未全部看到"),
    "page.diagnose": Text("Why it does not learn", "为什么学不到东西"),
    "rail.diagnose": Text("Diagnose", "诊断"),
}
