"""Replays: what they found, how exact they were, and why a step cannot be replayed."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── what became of it ────────────────────────────────────────────────────────────────────────────────────────────────

FOUND = Text("the step was replayed ({exact}): {found}", "该轮次已重放（{exact}）：{found}")
FROM_CAPSULE = Text("step {step} was replayed from its capsule: {exact}", "轮次 {step} 已由胶囊重放：{exact}")
NOT_REPLAYED = Text("the step was not replayed: {why}", "该轮次没有重放：{why}")
OTHER_RANK = Text(
    "this rank's own gradients were finite; the bad value came from another rank",
    "本逻辑卡自己的梯度是有限值；异常值来自另一张逻辑卡",
)
IN_PYNATIVE = Text("in PyNative: {found}", "在 PyNative 中：{found}")
SHADOW = Text(
    "compiled code shows no operators; they come from a second, uncompiled run of each step watched at op level "
    "({exact}; {seconds:.2g} s for the first)",
    "编译后的代码不显示算子；算子来自以 op 级别监测的每个轮次的第二次非编译运行（{exact}；首次用时 {seconds:.2g} 秒）",
)
HEALTHY = Text("the step was healthy when it was replayed", "该轮次重放时一切正常")
UPDATE_HEALTHY = Text(
    "the update did not fail again; the next step is watched at op level", "更新没有再次出错；下一轮次以 op 级别监测"
)

# ── how exact ────────────────────────────────────────────────────────────────────────────────────────────────────────

EXACT = Text("exact", "逐位一致")
NOT_EXACT = Text("not exact: {why}", "不完全一致：{why}")
WAS_HEALTHY = Text("the replay was healthy ({exact})", "重放一切正常（{exact}）")
LOSS_DIFFERS = Text("the loss is different ({why})", "损失不同（{why}）")
LOSS_ONLY = Text("loss only: {why}", "仅损失一致：{why}")
GRADIENTS_DIFFER = Text("{some} of {all} gradients are different ({why})", "{all} 个梯度中有 {some} 个不同（{why}）")
NO_GRADIENT_LEFT = Text("no gradient of the step was left to compare with", "该轮次没有留下可对比的梯度")
AVERAGED = Text(
    "gradients of this rank cannot be compared with the average over all ranks",
    "本逻辑卡的梯度无法与所有逻辑卡的平均值对比",
)
NETWORK_ONLY = Text(
    "network only: the loss was not replayed; everything from the network's outputs on is exact",
    "仅网络一致：损失没有重放；从网络输出起逐位一致",
)
OPERATORS_DIFFER = Text(
    "loss and gradients exact, {some} of {all} operators not, first {first}",
    "损失和梯度逐位一致，{all} 个算子中有 {some} 个不一致，第一个是 {first}",
)
FROM_WHAT_IT_LEFT = Text(
    "the update was replayed from its result, not from the weights before it",
    "更新是从其结果重放的，而不是从更新前的权重",
)
UPDATE_DIFFERS = Text("the update gave a different result from the same weights", "从同样的权重出发，更新的结果不同")
UPDATE_WROTE_OTHER = Text(
    "from the same weights, uncompiled, the update wrote different values to {name}",
    "从同样的权重、不经编译运行，更新写入 {name} 的值不同",
)
FOREIGN_GENERATOR = Text(
    "the network uses a random generator that is kept outside of it", "网络使用了保存在其外部的随机数生成器"
)
NEVER_CALLED = Text("the program never called the capsule's network", "程序没有调用胶囊中的网络")

# ── why it may differ ────────────────────────────────────────────────────────────────────────────────────────────────

STATE_CHANGED = Text("something other than the recorded state changed", "所记录的状态之外有变化")
PROGRAM_CHANGED = Text(
    "something other than the capsule's state changed: the program, or what it reads",
    "胶囊的状态之外有变化：程序，或它读取的内容",
)
OVERWRITTEN = Text(
    "a tensor of the batch was overwritten in place before the check", "检查之前，批数据中的张量被原地改写"
)
LOSS_BEFORE = Text(
    "part of the loss was computed before misstep watched; from the next step on it is seen",
    "损失的一部分在 misstep 开始监测之前计算；从下一轮次起可以看到",
)
WITHOUT_COMPILER = Text("a compiled network was replayed without its compiler", "编译的网络不经编译器重放")
CHANGED_AFTER = Text("they were changed after backward, for example by clipping", "它们在反向之后被改动，例如被裁剪")
CALLED_WITH = Text(
    "{name} was called with {now} tensors instead of {then}", "调用 {name} 时有 {now} 个张量，原为 {then} 个"
)
STATE_SIZE = Text("{name} keeps {now} tensors instead of {then}", "{name} 保存 {now} 个张量，原为 {then} 个")
NOT_CALLED_AS_BEFORE = Text("the loop did not call {name} as it did before", "循环没有像之前那样调用 {name}")
IS_VIEW = Text("{name} is a view, which cannot be written to", "{name} 是视图，不能写入")
OTHER_SHAPE = Text("{name} has shape {now} instead of {then}", "{name} 的形状为 {now}，原为 {then}")

# ── why a step cannot be replayed ────────────────────────────────────────────────────────────────────────────────────

NO_BACKWARD = Text("no backward of this step was seen", "没有看到该轮次的反向")
NO_EAGER_BACKWARD = Text(
    "no eager backward of this step was seen; compiled code is not replayed",
    "没有看到该轮次的动态图反向；编译的代码不会重放",
)
NO_UPDATE = Text("no update was seen", "没有看到更新")
STEPS_IN_BACKWARD = Text("the optimizer steps inside backward", "优化器在反向之中更新")
TOO_MUCH = Text("this step differentiated more than misstep keeps", "该轮次求导的内容超出 misstep 保留的数量")
NOT_KEPT_CALL = Text(
    "a tensor of the step was made by a call that misstep did not keep", "该轮次的一个张量来自 misstep 没有保留的调用"
)
ONE_COMPILED = Text(
    "network and loss are one compiled function, which cannot be replayed operator by operator; compile the network"
    " alone, or look at it uncompiled:  TORCHDYNAMO_DISABLE=1",
    "网络与损失是同一个编译函数，不能逐算子重放；请只编译网络，或不经编译查看：TORCHDYNAMO_DISABLE=1",
)
LOSS_ELSEWHERE = Text(
    "the loss was computed where misstep does not see it; from the next step on it is kept another way",
    "损失在 misstep 看不到的地方计算；从下一轮次起换一种方式保留",
)
AFTER_OUTPUT = Text(
    "the fault lies between the network's output and backward, where misstep sees nothing",
    "问题出在网络输出与反向之间，misstep 在那里看不到",
)
WAITS_FOR_RANKS = Text(
    "{name} inside the step waits for the other ranks, which do not replay it",
    "该轮次中的 {name} 要等待其他逻辑卡，而它们不会重放",
)
UPDATE_COMPILED = Text(
    "the optimizer was compiled together with the network, so its update cannot be replayed by itself",
    "优化器与网络一起编译，其更新不能单独重放",
)
COMPILED_MOVED = Text(
    "the compiled step has moved its weights, and {why}; to look into it:"
    "  MISSTEP_PYNATIVE={step} misstep run <command>",
    "编译的轮次已改动权重：{why}；查看它：MISSTEP_PYNATIVE={step} misstep run <command>",
)
TOO_MANY_WEIGHTS = Text(
    "its {size} MB of weights are more than the {most} MB that are kept", "其权重共 {size} MB，至多保留 {most} MB"
)
TOO_DEAR = Text(
    "keeping {size} MB of weights before every step would take {share:.0%} of its time",
    "每个轮次之前保留 {size} MB 权重要占用时的 {share:.0%}",
)
NOTHING_IN_PYNATIVE = Text(
    "nothing was differentiated when the step ran in PyNative", "该轮次在 PyNative 中运行时没有求导"
)

# ── capsules and samples ─────────────────────────────────────────────────────────────────────────────────────────────

CAPSULE = Text("misstep replay {name}", "misstep replay {name}")
NO_CAPSULE = Text("no capsule of step {step}: {why}", "轮次 {step} 没有胶囊：{why}")
NO_CAPSULES = Text(
    "{run} has no capsules: no step went wrong while misstep could keep one.  To keep some:"
    "  MISSTEP_CAPSULES={steps} misstep run <command>",
    "{run} 没有胶囊：在 misstep 能保存时没有轮次出错。要保存一些：MISSTEP_CAPSULES={steps} misstep run <command>",
)
OTHER_CAPSULES = Text(
    "{run} has no capsule of step {step}; it has {kept:list}", "{run} 没有轮次 {step} 的胶囊；它有 {kept:list}"
)
UNREADABLE = Text("{path} cannot be read as a capsule: {why}", "{path} 不能作为胶囊读取：{why}")
OTHER_VERSION = Text("{path} is a capsule of another version of misstep", "{path} 是另一个 misstep 版本的胶囊")
TOO_LARGE = Text(
    "a capsule of step {step} would take {size:,.0f} MB, more than capsule_mb allows ({most:,.0f}); raise it with"
    " MISSTEP_CAPSULE_MB",
    "轮次 {step} 的胶囊需要 {size:,.0f} MB，超过 capsule_mb（{most:,.0f}）；可用 MISSTEP_CAPSULE_MB 调大",
)
COMPILED_NO_CAPSULE = Text(
    "compiled code cannot be stopped to swap in other weights; to look into the step:"
    "  MISSTEP_PYNATIVE={step} misstep run <command>",
    "编译的代码不能中途换入别的权重；查看该轮次：MISSTEP_PYNATIVE={step} misstep run <command>",
)
NOT_DIFFERENTIATED = Text(
    "no network was differentiated in this step, and a capsule begins with one",
    "该轮次没有对任何网络求导，而胶囊由此开始",
)
NO_NETWORK_FIRST = Text(
    "this step does not begin with a call of a network, and a capsule does", "该轮次不是以调用网络开始，而胶囊由此开始"
)
ONE_SAMPLE = Text(
    "sample {samples} of the {count} in the batch causes it{known}{others}",
    "由这一批 {count} 个样本中的 {samples} 号引起{known}{others}",
)
SAMPLES = Text(
    "samples {samples} of the {count} in the batch cause it{known}{others}",
    "由这一批 {count} 个样本中的 {samples} 号引起{known}{others}",
)
KNOWN_AS = Text(" ({names:clauses})", "（{names:clauses}）")
DATASET_INDEX = Text("dataset index {indices}", "数据集索引 {indices}")
PERHAPS_OTHERS = Text(", and perhaps others", "，也许还有别的")
NO_SINGLE_SAMPLE = Text("no single sample of the batch causes it", "这一批中没有哪个样本单独引起它")
EVERY_PART_HEALTHY = Text("every part of the batch is healthy", "这一批的每一部分都正常")
