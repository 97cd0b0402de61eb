"""Rules about the loss: what goes into it and how it was made."""

from __future__ import annotations

from misstep.sentences.text import Text

SOFTMAX_TWICE = Text(
    "softmax is applied twice: cross entropy is given probabilities and makes its own",
    "softmax 用了两次：交叉熵得到的已是概率，而它自己还会再算一次",
)
SOFTMAX_TWICE_FIX = Text(
    "give the loss the outputs before softmax; keep softmax for prediction only",
    "把 softmax 之前的输出交给损失函数；softmax 只在预测时使用",
)
SOFTMAX_TWICE_WHEN = Text(
    "the operator before the log-softmax of the loss is a softmax, or every row that goes in sums to 1",
    "损失的 log-softmax 之前的算子是 softmax，或输入的每一行之和都为 1",
)
SIGMOID_TWICE = Text(
    "sigmoid is applied twice: the loss makes its own of what it is given", "sigmoid 用了两次：损失函数会对输入再做一次"
)
SIGMOID_TWICE_FIX = Text(
    "give BCEWithLogitsLoss the outputs before sigmoid, or use BCELoss",
    "把 sigmoid 之前的输出交给 BCEWithLogitsLoss，或改用 BCELoss",
)
SIGMOID_TWICE_WHEN = Text(
    "the operator before binary cross entropy with logits is a sigmoid or softmax",
    "带 logits 的二元交叉熵之前的算子是 sigmoid 或 softmax",
)
SQUASHED_LOGITS = Text(
    "the outputs given to cross entropy went through {function}: it cannot become sure of a class",
    "交给交叉熵的输出经过了 {function}：它无法对任何类别变得确定",
)
SQUASHED_LOGITS_FIX = Text("take {function} off the last layer", "去掉最后一层的 {function}")
SQUASHED_LOGITS_WHEN = Text(
    "the operator before the loss is sigmoid (error), tanh or relu (warning)",
    "损失之前的算子是 sigmoid（错误）、tanh 或 relu（警告）",
)
NOT_LOG_PROBABILITIES = Text(
    "nll_loss is given {what} instead of log-probabilities", "nll_loss 得到的是{what}，而不是对数概率"
)
PROBABILITIES = Text("probabilities", "概率")
LOGITS = Text("raw outputs", "未经处理的输出")
NOT_LOG_PROBABILITIES_FIX = Text(
    "use cross_entropy on the raw outputs, or log_softmax before nll_loss",
    "对未经处理的输出使用 cross_entropy，或在 nll_loss 之前使用 log_softmax",
)
NOT_LOG_PROBABILITIES_WHEN = Text(
    "the exponentials of the rows do not sum to 1 (within 1 %)", "各行取指数之和不为 1（误差 1 %）"
)
BROADCAST = Text(
    "the loss compares every prediction with every target: the shapes do not match and are broadcast",
    "损失把每个预测与每个标签相比：形状不一致，被广播了",
)
BROADCAST_FIX = Text(
    "make the shapes equal: prediction.squeeze(-1), or target.unsqueeze(-1)",
    "使形状一致：prediction.squeeze(-1) 或 target.unsqueeze(-1)",
)
BROADCAST_WHEN = Text(
    "N predictions minus N constants give a matrix of N × N", "N 个预测减去 N 个常数得到 N × N 的矩阵"
)
SIGN = Text("the loss is maximised: its sign is turned around", "损失在被最大化：符号反了")
SIGN_FIX = Text("remove the minus sign (or maximize=True)", "去掉负号（或 maximize=True）")
SIGN_WHEN = Text(
    "one loss function that is never negative, an objective that is, and one optimizer; or maximize with such a loss",
    "只有一个恒为非负的损失函数而目标为负，且只有一个优化器；或对这样的损失使用 maximize",
)
TARGET_RANGE = Text("targets of binary cross entropy lie outside of 0 to 1", "二元交叉熵的标签超出 0 到 1")
TARGET_RANGE_FIX = Text(
    "bring them to 0 and 1: (y + 1) / 2 for −1 and 1, y / 255 for images",
    "把它们变为 0 和 1：−1 与 1 用 (y + 1) / 2，图像用 y / 255",
)
TARGET_RANGE_WHEN = Text("a target below 0 or above 1", "标签小于 0 或大于 1")
ALL_IGNORED = Text("{share:.0%} of the targets are ignored", "{share:.0%} 的标签被忽略")
ALL_IGNORED_FIX = Text("look at ignore_index and at how the targets are made", "请检查 ignore_index 以及标签的生成方式")
ALL_IGNORED_WHEN = Text("more than 99 % of the targets are ignore_index", "超过 99 % 的标签为 ignore_index")
BATCH_SOFTMAX = Text(
    "softmax runs over the samples of the batch instead of the classes", "softmax 沿批次的样本而不是类别进行"
)
BATCH_SOFTMAX_FIX = Text("use dim=-1 (MindSpore: axis=-1)", "使用 dim=-1（MindSpore：axis=-1）")
BATCH_SOFTMAX_WHEN = Text("(samples, classes) is normalised along axis 0", "（样本，类别）沿第 0 轴归一化")
SUM_REDUCTION = Text(
    "the loss is summed over the batch: gradients are {times:count} times those of the mean",
    "损失对批次求和：梯度是求平均时的 {times:count} 倍",
)
SUM_REDUCTION_FIX = Text(
    "use reduction='mean', or divide the learning rate by the batch size", "使用 reduction='mean'，或把学习率除以批大小"
)
SUM_REDUCTION_WHEN = Text("reduction is sum and updates are too large", "reduction 为 sum 且更新过大")
