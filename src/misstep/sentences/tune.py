"""Why trials end, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

LOSS_NOT_FINITE = Text("step {step}: the loss is not finite", "轮次 {step}：损失不是有限值")
TARGET_NOT_FINITE = Text("the target is not finite", "目标不是有限值")
DIVERGED = Text(
    "step {step}: the loss is {loss:number}; it began at {begin:number}",
    "轮次 {step}：损失为 {loss:number}，开始时为 {begin:number}",
)
BEHIND = Text("behind other trials at step {step}", "在轮次 {step} 落后于其他试验")
TOO_LONG = Text("longer than {seconds:g} s", "超过 {seconds:g} 秒")
TOO_LARGE = Text("more than {memory:g} MB of memory", "内存超过 {memory:g} MB")
BY_HAND = Text("ended by hand", "手动结束")
WORKER_STOPPED = Text("the worker was stopped", "工作进程已停止")
WORKER_GONE = Text("its worker is gone", "其工作进程已不存在")
INFEASIBLE = Text("a constraint does not hold", "不满足约束")
SURPLUS = Text("one trial too many; it was never run", "多出的试验，未运行")
EXIT_CODE = Text("exit code {code}", "退出码 {code}")
CANNOT_START = Text("{program} cannot be started: {why}", "无法启动 {program}：{why}")
NEVER_RECORDED = Text("{name} was never recorded", "从未记录 {name}")
AWAY = Text("{storage} is away ({why}); trying again", "{storage} 暂不可用（{why}）；正在重试")
DROPPED = Text(
    "trial {number} was taken for stale and is run again; this result is dropped",
    "试验 {number} 被判定为失效并将重新运行；本次结果不计入",
)
NO_TORCH = Text(
    "the Gaussian process needs PyTorch, which is not installed; TPE proposes instead",
    "高斯过程需要 PyTorch，但未安装；改用 TPE",
)
