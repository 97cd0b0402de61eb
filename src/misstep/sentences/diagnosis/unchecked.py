"""What could not be checked, and why; and the words around a diagnosis."""

from __future__ import annotations

from misstep.sentences.text import Text

FAMILIES: dict[str, Text] = {
    "wiring": Text("wiring", "连接"),
    "objective": Text("objective", "目标"),
    "rate": Text("rate and update", "学习率与更新"),
    "signal": Text("signal", "信号"),
    "data": Text("data", "数据"),
    "ranks": Text("ranks", "逻辑卡"),
    "generalisation": Text("generalisation", "泛化"),
    "transformers": Text("transformers", "Transformer"),
}
LOOK_AT_VERDICT = Text(
    "misstep show tells which operator made the first of them, from which values",
    "misstep show 会指出哪个算子由哪些值产生了第一个",
)
NO_FACTS = Text(
    "nothing is known of how this run trains: it was recorded without facts (level off, or by an older misstep)",
    "不知道该运行如何训练：记录时没有采集事实（级别为 off，或由旧版 misstep 记录）",
)
FEW_STEPS = Text("only {steps:count} steps: most rules need eight", "只有 {steps:count} 个轮次：多数规则需要八个")
NO_OBJECTIVE = Text(
    "the loss function was not recognised: its inputs and targets were not seen",
    "没有识别出损失函数：未看到其输入和标签",
)
NO_GRAPH = Text(
    "the graph of the loss was not read: saved tensors go through hooks (checkpointing), or the step is compiled",
    "没有读取损失的计算图：保存的张量经过钩子（重计算），或该步已编译",
)
NO_TARGETS = Text("class balance not checked: targets were never seen", "未检查类别平衡：从未看到标签")
NO_INPUTS = Text("inputs were never seen", "从未看到输入")
NO_EVALUATION = Text("overfitting not checked: no evaluation was seen", "未检查过拟合：未看到评估")
NO_EVALUATION_LOSS = Text(
    "overfitting not checked: losses of evaluations are not recorded", "未检查过拟合：不记录评估的损失"
)
ONE_RANK = Text("only one rank", "只有一张逻辑卡")
NO_ATTENTION = Text("no attention with readable weights", "没有可读取权重的注意力")
LABELS = Text("whether labels belong to their inputs cannot be seen from outside", "标签是否与输入对应，无法从外部看出")
NO_ACTIVATIONS = Text("activations were not seen", "未看到激活")
