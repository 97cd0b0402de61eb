"""What `misstep memory` says at the terminal, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_MEMORY = Text(
    "Predict the memory a training needs before it runs.\n\n"
    "COMMAND is run for two steps in which tensors have shapes and no values (PyTorch), so that nothing is computed and"
    " hardly any memory is needed; it ends there, and nothing is saved. --largest finds the largest batch that fits."
    " With the name of a run, tells what its process held while it ran (both frameworks).",
    "在训练运行之前说明它需要多少内存。\n\n"
    "COMMAND 会运行两个轮次，其中张量只有形状而没有数值（PyTorch），因此不做计算，也几乎不占内存；"
    "随后结束，不保存任何内容。"
    "--largest 找出能放下的最大 batch size。给出训练名称时，说明其进程在运行中占用的内存（两种框架）。",
)
HELP_BATCH = Text(
    "Batch size of the data loaders, instead of the script's own.", "数据加载器的 batch size，代替脚本中的值。"
)
HELP_LIMIT = Text(
    "What must be enough, such as 8GiB; without it, what this machine has free.",
    "内存上限，如 8GiB；不给出时为本机的可用内存。",
)
HELP_LARGEST = Text("Find the largest batch size that fits.", "找出能放下的最大 batch size。")
HELP_MEASURE = Text(
    "Measure two steps with values instead of predicting them.", "用真实数值运行两个轮次并实测，而不是预测。"
)
HELP_SECONDS = Text("Longest time of one rehearsal.", "每次预演的最长时间（秒）。")
PREDICTED = Text(
    "peak {peak} predicted, with {samples:count} {samples:plural sample|samples} in a batch",
    "预测峰值 {peak}，每批 {samples:count} 个样本",
)
MEASURED = Text(
    "peak {peak} measured, with {samples:count} {samples:plural sample|samples} in a batch",
    "实测峰值 {peak}，每批 {samples:count} 个样本",
)
PEAK_AT = Text(
    "reached in step {step}, {phase}: {operator} {place}",
    "出现在轮次 {step} 的{phase}：{operator} {place}",
)
REUSE = Text(
    "without reuse of freed memory it would be {naive} ({factor:.1f} times)",
    "若不复用已释放的内存，将需要 {naive}（{factor:.1f} 倍）",
)
HELD_BY = Text("held at the peak", "峰值时的持有者")
FITS = Text("fits in {limit}", "可放入 {limit}")
DOES_NOT_FIT = Text("does not fit in {limit}: {more} too much", "放不进 {limit}：超出 {more}")
WAYS_OUT = Text(
    "cheapest first: a smaller batch (--largest), checkpointing of the modules above, an optimizer with less state",
    "由易到难：更小的 batch size（--largest）、对上面的模块使用重计算、状态更少的优化器",
)
LARGEST = Text(
    "largest batch that fits: {samples:count} ({peak}); {next:count} would need {next_peak}",
    "能放下的最大 batch size：{samples:count}（{peak}）；{next:count} 需要 {next_peak}",
)
ALL_DATA = Text(
    "even a batch of all {samples:count} samples fits ({peak})",
    "即使把全部 {samples:count} 个样本作为一批也能放下（{peak}）",
)
NONE_FITS = Text("not even a batch of one fits", "batch size 为 1 也放不下")
NOT_SEEN = Text(
    "not in these figures: the program itself, its data set, and memory inside an operator (its workspace)",
    "未计入：程序本身、数据集，以及算子内部的工作内存",
)
REHEARSING = Text("rehearsing a batch of {batch}", "预演 batch size {batch}")
BAD_SIZE = Text(
    "--limit {given} is no size; write 8GiB, 512MB or a number of bytes",
    "--limit {given} 不是大小；请写 8GiB、512MB 或字节数",
)
RESIDENT = Text(
    "{run} rank {rank}: {first} at first, {most} at most (step {step}), {last} at the end; {looks:count} looks",
    "{run} 逻辑卡 {rank}：开始时 {first}，最多 {most}（轮次 {step}），结束时 {last}；共查看 {looks:count} 次",
)
LEAK = Text(
    "it keeps rising: {per_step} a step, {risen} since the first third; something holds on to tensors of earlier steps"
    " (a list of losses without .item(), a graph kept alive)",
    "内存持续上升：每个轮次 {per_step}，自前三分之一以来 {risen}；有对象一直持有之前轮次的张量"
    "（例如未用 .item() 的损失列表、未释放的计算图）",
)
NO_LEAK = Text("it does not keep rising", "内存没有持续上升")
TOO_SHORT = Text("too few looks to tell whether it keeps rising", "查看次数太少，无法判断内存是否持续上升")
NOT_LOOKED = Text(
    "{run} was shorter than a second, or recorded by an earlier misstep: its memory was not looked at",
    "{run} 不到一秒，或由较早版本的 misstep 记录：没有查看其内存",
)
