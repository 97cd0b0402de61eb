"""What is said of profiled operators."""

from __future__ import annotations

from misstep.sentences.text import Text

NO_PROFILE = Text(
    "{run} has no profile; make one with  misstep profile <command>",
    "{run} 没有性能剖析数据；请用  misstep profile <命令>  采集",
)
UNREADABLE = Text("cannot read the profile {path}: {why}", "无法读取性能剖析数据 {path}：{why}")
NOT_REPRODUCED = Text(
    "{operator} cannot be called again by itself: its arguments are not all tensors and numbers",
    "无法单独重新调用 {operator}：它的参数不全是张量和数值",
)
