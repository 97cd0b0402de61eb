"""What parts two loss curves, as far as their runs recorded it."""

from __future__ import annotations

from misstep.sentences.text import Text

CAUSES: dict[str, Text] = {
    "optimizer": Text("another optimizer: {left} and {right}", "优化器不同：{left} 与 {right}"),
    "setting": Text(
        "the optimizer's {what} is {left} here, {right} there", "优化器的 {what} 左侧为 {left}，右侧为 {right}"
    ),
    "learning_rate": Text(
        "at step {step} the learning rate is {left} here, {right} there",
        "轮次 {step} 的学习率左侧为 {left}，右侧为 {right}",
    ),
    "loss_scale": Text(
        "at step {step} the loss scale is {left} here, {right} there",
        "轮次 {step} 的损失缩放左侧为 {left}，右侧为 {right}",
    ),
    "skipped": Text(
        "only one side skipped the update of step {step}, because a gradient overflowed",
        "只有一侧因梯度溢出跳过了轮次 {step} 的更新",
    ),
    "clipping": Text(
        "gradients are clipped on one side only, to a norm of {right}; the other reaches {left} at step {step}",
        "只有一侧裁剪了梯度，范数上限为 {right}；另一侧在轮次 {step} 达到 {left}",
    ),
    "scaled": Text(
        "the gradients of step {step} are {right} times as large on one side: a loss scale that is not taken out,"
        " another reduction of the loss, or accumulation",
        "轮次 {step} 的梯度一侧是另一侧的 {right} 倍：损失缩放未还原、损失的归约方式不同，或梯度累积",
    ),
    "gradient": Text(
        "the losses of step {step} are equal and the gradients are not ({left} and {right}): the backward pass differs",
        "轮次 {step} 的损失相同而梯度不同（{left} 与 {right}）：反向计算不同",
    ),
    "update": Text(
        "loss and gradients of step {step} are equal: the update differs, in something the runs did not record",
        "轮次 {step} 的损失与梯度均相同：更新不同，但训练未记录相应设置",
    ),
    "forward": Text(
        "the first step is off: the forward pass, its inputs or the initial weights differ;"
        " `misstep diff {left} {right}` compares it layer by layer",
        "第一个轮次即不同：前向计算、输入或初始权重不同；可用 `misstep diff {left} {right}` 逐层比较",
    ),
}
