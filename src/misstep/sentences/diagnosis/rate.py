"""Rules about the learning rate and the size of updates."""

from __future__ import annotations

from misstep.sentences.text import Text

ZERO = Text("the learning rate is 0", "学习率为 0")
ZERO_FIX = Text("look at the optimizer's lr and at the schedule", "请检查优化器的 lr 和学习率调度")
ZERO_WHEN = Text("0 in every group, in all steps but the first", "除第一轮外，所有组的学习率一直为 0")
DECAYED = Text(
    "the learning rate falls to {rate:number} by step {step} of {steps}: the rest of the training learns nothing",
    "学习率在 {steps} 个轮次中的第 {step} 个就降到 {rate:number}：之后学不到东西",
)
DECAYED_FIX = Text(
    "call scheduler.step() once per epoch, or choose the schedule's length in updates",
    "每个 epoch 调用一次 scheduler.step()，或按更新次数设定调度长度",
)
DECAYED_WHEN = Text(
    "a ten-thousandth of its largest value before half of the steps, and never up again",
    "前一半轮次内降到最大值的万分之一，且不再回升",
)
TINY = Text("updates are too small to learn anything", "更新太小，学不到东西")
TINY_FIX = Text(
    "raise the learning rate: layers should move by 1e-4 to 1e-2 of their size per update",
    "提高学习率：每次更新各层应变化其大小的 1e-4 到 1e-2",
)
TINY_WHEN = Text(
    "layers move by less than 1e-6 of their size (error below 1e-8) and the loss stays; usual are 1e-4 to 1e-1",
    "各层的变化小于其大小的 1e-6（小于 1e-8 为错误）且损失不变；通常为 1e-4 到 1e-1",
)
HUGE = Text("updates are so large that they wipe out what was learnt", "更新过大，已学到的内容被抹去")
HUGE_FIX = Text("lower the learning rate ten- to a hundredfold", "把学习率降低十到一百倍")
HUGE_WHEN = Text(
    "layers move by more than 30 % of their size in three looks or more, and the loss does not fall",
    "三次以上查看中各层变化超过其大小的 30 %，且损失不下降",
)
DIVERGES = Text("the loss grows", "损失在增大")
DIVERGES_FIX = Text(
    "lower the learning rate; misstep show names the first step at which it turned",
    "降低学习率；misstep show 会指出开始增大的轮次",
)
DIVERGES_WHEN = Text(
    "the last tenth is three times the first, with one optimizer and a known loss",
    "最后十分之一是最初的三倍，且只有一个优化器和已知的损失",
)
DECAY_COLLAPSES = Text("weight decay shrinks the weights to nothing", "权重衰减把权重缩小到接近零")
DECAY_COLLAPSES_FIX = Text(
    "use a weight decay of 1e-4 (SGD) to 1e-1 (AdamW, with a learning rate below 1e-2)",
    "权重衰减取 1e-4（SGD）到 1e-1（AdamW，学习率小于 1e-2）",
)
DECAY_COLLAPSES_WHEN = Text(
    "with weight decay, most layers have lost three fifths of their norm, and the loss does not fall",
    "使用权重衰减时，多数层的范数减少了五分之三，且损失不下降",
)
MOMENTUM = Text("{name} = {value:number} never forgets a gradient", "{name} = {value:number}，梯度永远不会被忘记")
MOMENTUM_FIX = Text("use 0.9 (0.999 for beta2)", "使用 0.9（beta2 用 0.999）")
MOMENTUM_WHEN = Text("momentum or beta1 of 0.999 or more", "momentum 或 beta1 为 0.999 或更大")
EPS = Text("eps = {value:number} swallows the gradients", "eps = {value:number}，淹没了梯度")
EPS_FIX = Text("use 1e-8", "使用 1e-8")
EPS_WHEN = Text("1e-3 or more in an Adam, and updates are too small", "Adam 的 eps 为 1e-3 或更大，且更新过小")
PLATEAU = Text("the loss stays at the level of guessing", "损失停留在随机猜测的水平")
PLATEAU_FIX = Text(
    "see whether it can learn 32 samples by heart; if it can, the labels do not belong to the inputs",
    "先看它能否记住 32 个样本；如果能，说明标签与输入不对应",
)
PLATEAU_WHEN = Text(
    "after 30 steps or more within 3 % of −log(1/C), as at the beginning",
    "30 个轮次以后仍与开始时一样，在 −log(1/C) 的 3 % 以内",
)
