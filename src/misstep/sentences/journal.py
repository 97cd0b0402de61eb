"""What the journal of a run notes: endings, levels, losses of data, both modes of MindSpore."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── lines of the journal ─────────────────────────────────────────────────────────────────────────────────────────────

ENDED = Text("{ending}, exit code {code}", "{ending}，退出码 {code}")
STATE_AT = Text("{state} at step {step}", "{state}，轮次 {step}")
STATE_BECAUSE = Text("{state} at step {step}: {why:sentence}", "{state}，轮次 {step}：{why:sentence}")
HIT = Text("{condition} {address}: {why:sentence}", "{condition} {address}：{why:sentence}")
SKIPPED = Text("the update of step {step} was skipped", "轮次 {step} 的更新被跳过")
SCALE = Text("loss scale {scale}", "损失缩放 {scale}")
OVERFLOWED_AT = Text("it overflowed first at {node}", "最先在 {node} 溢出")
LOST_TENSORS = Text(
    "{count:count} tensors could not be kept at step {step}", "轮次 {step} 有 {count:count} 个张量未能保留"
)

# ── how closely ──────────────────────────────────────────────────────────────────────────────────────────────────────

EVERY_STEP = Text(
    "every step is watched at {level} level: it costs {cost:.1%} of a step, the budget is {budget:.1%}",
    "每个轮次都以 {level} 级别监测：占一个轮次的 {cost:.1%}，预算是 {budget:.1%}",
)
ONE_STEP_IN = Text(
    "one step in {interval} is watched at {level} level: it costs {cost:.1%} of a step, the budget is {budget:.1%}",
    "每 {interval} 个轮次以 {level} 级别监测一次：占一个轮次的 {cost:.1%}，预算是 {budget:.1%}",
)
STATS_FULL = Text(
    "stats.bin has reached {size:,.0f} MB (stats_mb); from now on the rows of 1 in {interval} steps are kept",
    "stats.bin 已达 {size:,.0f} MB（stats_mb）；此后每 {interval} 个轮次保留一次",
)
PACK_FULL = Text(
    "the dumped tensors have reached pack_mb ({limit:,.0f} MB); no more are kept",
    "Dump 数据已达 pack_mb（{limit:,.0f} MB）；不再保存",
)

# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────

OWN_FAILURES = Text(
    "misstep itself failed {count} {count:plural time|times} {where}", "misstep 自身出错 {count} 次（{where}）"
)
OWN_FAILURE = Text("{where}: {error}", "{where}：{error}")
NO_ROOM_BEFORE = Text(
    "no room for the previous value of {count} tensors within memory_mb={limit}; their change is not watched",
    "memory_mb={limit} 放不下 {count} 个张量上一轮次的值；不监测它们的变化",
)
NO_ROOM_TO_HOLD = Text(
    "a dump on a hit will lack {count} tensors: there is no room to hold them until the step ends within {limit:g} MB"
    " (a quarter of memory_mb)",
    "命中时的 Dump 数据会缺 {count} 个张量：{limit:g} MB（memory_mb 的四分之一）不够把它们留到轮次结束",
)
DUMP_CONFIGURATION = Text("dump configuration: {what}", "Dump 配置：{what}")
NO_FLIGHT_RECORD = Text("no flight record: {why}", "没有飞行记录：{why}")
COMPILED_BEFORE = Text(
    "MindSpore compiled a network before misstep could ask for its graphs, so there are none",
    "misstep 还没来得及要求保存计算图，MindSpore 就已编译过网络，因此没有计算图",
)
DATA_WITHOUT_GRAPH = Text(
    "graph {number} has data but no .ir file; it is not shown", "图 {number} 有数据但没有 .ir 文件；不显示"
)

# ── both modes of MindSpore ──────────────────────────────────────────────────────────────────────────────────────────

RAN_IN_PYNATIVE = Text("step {step} ran in PyNative too: {found}", "轮次 {step} 也在 PyNative 中运行：{found}")
NOT_IN_PYNATIVE = Text("step {step} could not run in PyNative: {why}", "轮次 {step} 无法在 PyNative 中运行：{why}")
WILL_RUN_IN_PYNATIVE = Text(
    "these steps will also run in PyNative: {steps:list}", "这些轮次也将在 PyNative 中运行：{steps:list}"
)
LOSS_AGREES = Text("the loss agrees with graph mode", "损失与图模式一致")
ALL_AGREE = Text("loss and gradients agree with graph mode", "损失和梯度与图模式一致")
WITH_LOSSES = Text("{what} ({both})", "{what}（{both}）")
BOTH_LOSSES = Text("{graph:.7g} in graph mode, {eager:.7g} in PyNative", "图模式 {graph:.7g}，PyNative {eager:.7g}")
MODES_DIFFER = Text("the modes differ: {where}", "两种模式不同：{where}")
LOSSES_DIFFER = Text("loss {both}", "损失 {both}")
GRADIENTS_DIFFER = Text("{some} of {all} gradients, first {first}", "{all} 个梯度中有 {some} 个，第一个是 {first}")
AND = Text("{parts:and}", "{parts:and}")
FIRST_DIFFERENT = Text("first different {what}", "最先不同：{what}")
OUTPUT_OF = Text("output of {node}", "{node} 的输出")
OUTPUT_OF_AT = Text("output of {node}, {source}", "{node} 的输出，{source}")
OUTPUTS_AGREE = Text("{count} outputs of the forward agree", "前向的 {count} 个输出一致")
DROPOUT = Text("Dropout draws other numbers in each mode", "Dropout 在两种模式下取不同的随机数")
STEP_RANGE = Text("{first} to {last}", "{first} 到 {last}")
THE_END = Text("the end", "结束")
CANNOT_WRITE = Text(
    "cannot write to {path}: {why}. Training goes on; records that cannot be kept are counted."
    " Make room, or choose another place with MISSTEP_DIR.",
    "无法写入 {path}：{why}。训练继续进行；未能保存的记录会被计数。请释放空间，或用 MISSTEP_DIR 另选位置。",
)
