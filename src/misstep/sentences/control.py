"""Moving a live training: where it is on its way to, why it paused, and why a command is refused."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── goals ────────────────────────────────────────────────────────────────────────────────────────────────────────────

NEXT_NODE = Text("the next node", "下一个节点")
FIRST_IN_PYNATIVE = Text("the first node of step {step} in PyNative", "轮次 {step} 在 PyNative 中的第一个节点")
END_OF_STEP = Text("the end of step {step}", "轮次 {step} 结束")
BEFORE_NODE = Text("before {node}", "{node} 之前")
AFTER_NODE = Text("after {node}", "{node} 之后")
IN_PHASE = Text("{place} ({phase})", "{place}（{phase}）")

# ── why it paused or ended ───────────────────────────────────────────────────────────────────────────────────────────

BEFORE_FIRST = Text("paused before the first step", "在第一个轮次之前暂停")
ON_REQUEST = Text("paused on request", "应要求暂停")
NODE_RAN = Text("{node} ran ({phase})", "{node} 已执行（{phase}）")
REACHED = Text("reached {goal}", "已到达：{goal}")
HOLDS = Text("{condition} holds at step {step}", "轮次 {step} 满足 {condition}")
STEP_ENDED = Text("step {step} ended", "轮次 {step} 已结束")
NOT_MET = Text(
    "{node} did not run in step {step}; paused at its end{nearest}",
    "{node} 在轮次 {step} 中没有执行；已在该轮次结束时暂停{nearest}",
)
ALL_RANKS_END = Text("all ranks end together", "所有逻辑卡一起结束")

# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

NODES_ARE = Text("nodes are {kind}s now", "现在以{kind}为节点")
NODES_WILL_BE = Text("nodes are {kind}s from the next step on", "从下一轮次起以{kind}为节点")
KINDS: dict[str, Text] = {"module": Text("module", "模块"), "operator": Text("operator", "算子")}
QUEUED = Text("queued: {goal}", "已排队：{goal}")
ON_THE_WAY = Text("on the way to {goal}", "正在前往：{goal}")
PAUSING_AT_STEP = Text("pausing at the end of the step", "将在轮次结束时暂停")
PAUSING_AT_NODE = Text("pausing at the next node", "将在下一个节点暂停")
RUNNING = Text("running", "运行中")
ENDING = Text("ending at the next node or step", "将在下一个节点或轮次结束训练")
DETACHING = Text("detached; training goes on without misstep", "已分离；训练继续，不再受 misstep 监测")

# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

STALE = Text(
    "the run has moved since you looked (revision {now}, yours is {yours}); it is {state} now",
    "自你查看以来训练已有变化（当前修订 {now}，你的是 {yours}）；现在的状态：{state}",
)
TRAINING_IS_OVER = Text("cannot {op}: training is {state}", "无法执行 {op}：训练{state}")
STATES: dict[str, Text] = {
    "running": Text("running", "运行中"),
    "pausing": Text("pausing", "正在暂停"),
    "paused": Text("paused", "已暂停"),
    "stepping": Text("stepping", "单步中"),
    "terminating": Text("terminating", "正在结束"),
    "ended": Text("ended", "已结束"),
    "detached": Text("detached", "已分离"),
}
QUEUE_FULL = Text("100 commands are already waiting; pause or continue first", "已有 100 条命令在等待；请先暂停或继续")
ALREADY_PAUSED = Text("training is already paused", "训练已经暂停")
ALREADY_RUNNING = Text("training is already running", "训练已在运行")
STEP_COUNT = Text("cannot take {count} steps; from 1 to 2147483647", "不能运行 {count} 个轮次；应为 1 到 2147483647")
UNSUPPORTED = Text("a live training cannot {op}", "正在运行的训练不支持 {op}")
UNREADABLE_UNTIL = Text(
    "cannot read the condition {text!r}; examples: 'loss > 10', 'step >= 40 or time > 60' (names: {names:list})",
    "无法识别条件 {text!r}；例如 'loss > 10'、'step >= 40 or time > 60'（可用名称：{names:list}）",
)
NOT_CONNECTED = Text("no process of {run} is connected", "{run} 没有已连接的进程")
RANK_NOT_CONNECTED = Text(
    "rank {rank} is not connected; there are {ranks:list}", "逻辑卡 {rank} 未连接；已连接：{ranks:list}"
)
RANK_GONE = Text("rank {rank} is gone: {why}", "逻辑卡 {rank} 已断开：{why}")
RANK_SILENT = Text(
    "rank {rank} did not answer within {seconds:g} s; it may be inside a long operator",
    "逻辑卡 {rank} 在 {seconds:g} 秒内没有回应；可能正在执行耗时的算子",
)
ONE_RANK = Text("{condition} compares ranks, and this run has one", "{condition} 用于对比各逻辑卡，而此次训练只有一张")
RUN_HAS_STEPS = Text(
    "{run} has steps 0 to {last}; {step} is not one of them", "{run} 有轮次 0 到 {last}；没有轮次 {step}"
)
HAS_ENDED = Text(
    "{run} has ended, so it cannot {op}; to read what it left:  misstep show {run}",
    "{run} 已结束，无法执行 {op}；查看它留下的内容：misstep show {run}",
)
IS_NOT_CONNECTED = Text(
    "{run} is not connected, so it cannot {op}; to read what it recorded:  misstep show {run}",
    "{run} 未连接，无法执行 {op}；查看已记录的内容：misstep show {run}",
)
NOT_LIVE = Text(
    "{run} is not live; to check watchpoints on what it left:  misstep check {run}",
    "{run} 没有在运行；对它留下的数据检查监测点：misstep check {run}",
)
STALE_RUN = Text(
    "the run has moved since you looked (revision {now}, yours is {yours})",
    "自你查看以来训练已有变化（当前修订 {now}，你的是 {yours}）",
)
STILL_RUNNING = Text(
    "{run} is still running; make a record of it with:  misstep record {run}",
    "{run} 仍在运行；为它生成记录：misstep record {run}",
)

# ── PyNative ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PYNATIVE_ALREADY = Text(
    "this run already trains in PyNative and compiles nothing: n walks from node to node",
    "此次训练已在 PyNative 中运行，没有编译任何轮次：n 逐个节点前进",
)
IN_PYNATIVE_NOW = Text(
    "step {step} is running in PyNative now: n and to walk through it",
    "轮次 {step} 正在 PyNative 中运行：用 n 和 to 前进",
)
UNDER_WAY = Text(
    "step {step} is under way: s ends it, then pynative runs the next",
    "轮次 {step} 正在进行：先用 s 结束它，再用 pynative 运行下一个",
)
STEP_IS_OVER = Text(
    "step {steps} is over, {done} have ended; name steps to come, for example pynative {first}:{last}",
    "轮次 {steps} 已过，已结束 {done} 个；请指定之后的轮次，例如 pynative {first}:{last}",
)

RECHECK_PAUSED = Text(
    "recheck looks at the tensors of a paused step; pause first", "recheck 检查暂停轮次的张量；请先暂停"
)
ALL_RANKS_PAUSED = Text(
    "all ranks must run the same step in PyNative; pause first", "所有逻辑卡须在 PyNative 中运行同一轮次；请先暂停"
)
NOTHING_COMPILED = Text(
    "pynative runs compiled MindSpore code, and this run has none", "pynative 用于编译的 MindSpore 代码，而此次训练没有"
)
ENDED_BEFORE = Text("training ended before this could be done", "训练在此之前已结束")
TOO_MUCH_UNDER_WAY = Text(
    "too much data is already on its way to the hub; ask for a smaller part", "正在传输的数据已经太多；请只取一小部分"
)

# ── conditions across ranks ──────────────────────────────────────────────────────────────────────────────────────────

NOT_AVERAGED = Text(
    "rank {rank} updates with other gradients than rank {other} though their weights were equal: gradients are not"
    " averaged (is the model wrapped in DistributedDataParallel?)",
    "逻辑卡 {rank} 与逻辑卡 {other} 权重相同，却用不同的梯度更新：梯度没有求平均"
    "（模型是否包在 DistributedDataParallel 中？）",
)
WEIGHTS_PARTED = Text(
    "{some} of {all} weights of rank {rank} differ from rank {other}; they were equal before",
    "逻辑卡 {rank} 的 {all} 个权重中有 {some} 个与逻辑卡 {other} 不同；此前相同",
)
WEIGHTS_APART = Text(
    "{some} of {all} weights of rank {rank} differ from rank {other}; they always did: sharded, or not broadcast",
    "逻辑卡 {rank} 的 {all} 个权重中有 {some} 个与逻辑卡 {other} 不同；一直如此：被切分，或没有广播",
)
SAME_BATCH = Text(
    "rank {rank} gets the same batch as rank {other}: a DistributedSampler or a shard is missing",
    "逻辑卡 {rank} 与逻辑卡 {other} 拿到同一批数据：缺少 DistributedSampler 或数据切分",
)
LOSS_APART = Text(
    "the loss of rank {rank} is {loss:number}, others have {middle:number}",
    "逻辑卡 {rank} 的损失为 {loss:number}，其他逻辑卡为 {middle:number}",
)
LOSS_APART_LONG = Text(
    "the loss of rank {rank} is {loss:number}, others have {middle:number}, {steps} steps in a row",
    "逻辑卡 {rank} 的损失为 {loss:number}，其他逻辑卡为 {middle:number}，已连续 {steps} 个轮次",
)
