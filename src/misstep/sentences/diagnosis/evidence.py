"""Evidence of findings: figures, names and steps."""

from __future__ import annotations

from misstep.sentences.text import Text

WEIGHTS = Text("weights: {names:list}", "权重：{names:list}")
NORMS = Text(
    "gradient norms {low:number} to {high:number}, update 0", "梯度范数 {low:number} 到 {high:number}，更新为 0"
)
NO_GRADIENT = Text("no gradient arrived in {looks} steps looked at", "查看过的 {looks} 个轮次中都没有梯度")
MADE_AT = Text("the optimizer was made at {line}", "优化器创建于 {line}")
ADDED_AT = Text("these weights were made later, at {line}", "这些权重之后才创建，位于 {line}")
STALE = Text(
    "the optimizer holds {count:count} {count:plural tensor|tensors} that no network has any more",
    "优化器持有 {count:count} 个已不属于任何网络的张量",
)
NOT_REGISTERED = Text(
    "no module has them as parameters: they stand in a plain list or dict, or in an attribute that is no Parameter",
    "没有模块将其注册为参数：它们位于普通的 list、dict 或不是 Parameter 的属性中",
)
ORDER = Text("calls of step {step}: {order}", "轮次 {step} 的调用顺序：{order}")
LEFT_OVER = Text(
    "in {count:count} of {all:count} updates the gradients still held those of the update before",
    "{all:count} 次更新中有 {count:count} 次，梯度中仍留有上一次更新的梯度",
)
LOSS = Text(
    "loss {first:number} at the beginning, {last:number} at the end",
    "损失开始时为 {first:number}，结束时为 {last:number}",
)
LOSS_IS = Text("loss {value:number} at step {step}", "轮次 {step} 的损失为 {value:number}")
RATIO = Text(
    "update over weight, in the middle of the layers: {low:number} to {high:number} (usual: 1e-4 to 1e-1)",
    "各层更新与权重之比的中位数：{low:number} 到 {high:number}（通常为 1e-4 到 1e-1）",
)
RATE = Text("learning rate {rates}", "学习率 {rates}")
CLIPPED = Text(
    "gradients of norm {norm:number} are clipped to {most:number}", "范数为 {norm:number} 的梯度被裁剪到 {most:number}"
)
CHAIN = Text("{chain} → {loss}", "{chain} → {loss}")
ROWS = Text("every row of what goes into the loss sums to 1", "输入损失函数的每一行之和都为 1")
SHAPES = Text(
    "prediction {prediction}, after the target is subtracted {result}", "预测为 {prediction}，减去标签后为 {result}"
)
RANGE = Text("values {low:number} to {high:number}", "取值 {low:number} 到 {high:number}")
INPUTS = Text(
    "inputs from {low:number} to {high:number}, mean {mean:number}, standard deviation {std:number}",
    "输入从 {low:number} 到 {high:number}，均值 {mean:number}，标准差 {std:number}",
)
SHARE = Text("{share:.0%} at step {step}", "轮次 {step} 时为 {share:.0%}")
SPREAD = Text(
    "predictions of different samples differ by {spread:number} of their size",
    "不同样本的预测之差为其大小的 {spread:number}",
)
CLASS_SHARE = Text(
    "the most frequent class: {target:.0%} of the targets, {prediction:.0%} of the predictions",
    "最多的类别：占标签的 {target:.0%}，占预测的 {prediction:.0%}",
)
DEPTH = Text(
    "gradient over weight: {first:number} in {name}, {last:number} in {other}",
    "梯度与权重之比：{name} 为 {first:number}，{other} 为 {last:number}",
)
CHANCE = Text(
    "guessing among {classes} classes gives {chance:number}", "在 {classes} 个类别中随机猜测的损失为 {chance:number}"
)
SIZES = Text(
    "norm of the weights: {first:number} at the beginning, {last:number} now",
    "权重范数：开始时 {first:number}，现在 {last:number}",
)
BATCH = Text(
    "{count:count} steps, {distinct:count} different {distinct:plural batch|batches}",
    "{count:count} 个轮次，{distinct:count} 个不同的批次",
)
FUTURE = Text(
    "attention gives {share:.0%} of its weight to later positions", "注意力有 {share:.0%} 的权重给了之后的位置"
)
NEXT_TOKEN = Text("{share:.0%} of the targets are the next token of the input", "{share:.0%} 的标签是输入的下一个词元")
SAME_TOKEN = Text(
    "{share:.0%} of the targets are the same token of the input", "{share:.0%} 的标签就是输入的同一个词元"
)
MODE = Text(
    "training mode at step {first}, evaluation mode at step {last}", "轮次 {first} 为训练模式，轮次 {last} 为评估模式"
)
LAYERS = Text(
    "{norms:count} normalisation and {dropouts:count} dropout {dropouts:plural layer|layers}",
    "{norms:count} 个归一化层，{dropouts:count} 个 dropout 层",
)
SKIPPED = Text("{count:count} of {all:count} updates left out", "{all:count} 次更新中有 {count:count} 次被跳过")
RANKS = Text("ranks {ranks:list} at step {step}", "轮次 {step} 的逻辑卡 {ranks:list}")
OPTION = Text("{name} = {value:number}", "{name} = {value:number}")
