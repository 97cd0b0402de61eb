"""What is said of the speed of a training: verdicts, advice and what a trial of it came to."""

from __future__ import annotations

from misstep.sentences.text import Text

SEGMENTS: dict[str, Text] = {
    "data": Text("data wait", "等待数据"),
    "transfer": Text("transfer", "数据搬运"),
    "forward": Text("forward", "前向"),
    "loss": Text("loss", "损失"),
    "backward": Text("backward", "反向"),
    "gradients": Text("gradients", "梯度处理"),
    "optimizer": Text("optimizer", "优化器"),
    "gap": Text("gap", "轮次间隙"),
    "compile": Text("compile", "编译"),
    "misstep": Text("misstep", "misstep"),
}
VERDICTS: dict[str, Text] = {
    "input": Text("input-bound", "受数据处理限制"),
    "transfer": Text("transfer-bound", "受数据传递限制"),
    "saturated": Text("CPU-saturated", "CPU 已饱和"),
    "fine": Text("data keeps up", "数据供应跟得上"),
    "unknown": Text("not known", "未知"),
}

# ── why a verdict ────────────────────────────────────────────────────────────────────────────────────────────────────
INPUT_EMPTY = Text(
    "the queue is empty on {empty:.0%} of asks, and data is waited for {share:.0%} of a step",
    "{empty:.0%} 的取数请求遇到空队列，等待数据占一个轮次的 {share:.0%}",
)
INPUT_HERE = Text(
    "batches are made on the training thread (num_workers=0), which takes {share:.0%} of a step",
    "批次在训练线程上生成（num_workers=0），占一个轮次的 {share:.0%}",
)
INPUT_UNSEEN = Text(
    "data is waited for {share:.0%} of a step; how full this pipeline's queues are is not visible",
    "等待数据占一个轮次的 {share:.0%}；该数据管道的队列深度不可见",
)
TRANSFER_READY = Text(
    "data is waited for {share:.0%} of a step although batches lie ready on {ready:.0%} of asks: handing them over is"
    " what takes the time",
    "等待数据占一个轮次的 {share:.0%}，但 {ready:.0%} 的取数请求时已有批次就绪：耗时在批次的传递",
)
SATURATED = Text(
    "data is waited for {share:.0%} of a step, and no core is left to make it faster: workers were ready without a core"
    " for {delay:.0%} of their time; {busy:.1f} of {cores:.0f} cores are busy, {others:.1f} of them with other"
    " programs",
    "等待数据占一个轮次的 {share:.0%}，且没有空闲的核可以加速：工作进程有 {delay:.0%} 的时间就绪却得不到核；"
    "{cores:.0f} 个核中有 {busy:.1f} 个在忙，其中 {others:.1f} 个被其他程序占用",
)
FINE = Text("data is waited for {share:.1%} of a step", "等待数据占一个轮次的 {share:.1%}")
TOO_FEW = Text(
    "{steps:count} {steps:plural step|steps} recorded; at least {fewest} are needed to say anything",
    "只记录了 {steps:count} 个轮次；至少需要 {fewest} 个才能得出结论",
)

# ── advice: what, why, and by which threshold ────────────────────────────────────────────────────────────────────────
WORKERS = Text("num_workers {before} → {after}", "num_workers {before} → {after}")
WORKERS_WHY = Text(
    "a batch takes {make:.1f} ms to make and the rest of a step {rest:.1f} ms",
    "生成一个批次需要 {make:.1f} ms，一个轮次的其余部分需要 {rest:.1f} ms",
)
WORKERS_RULE = Text(
    "data wait over 10 % of a step and an empty queue on over 30 % of asks",
    "等待数据超过一个轮次的 10 %，且超过 30 % 的取数请求遇到空队列",
)
NO_WORKERS = Text("num_workers {before} → 0", "num_workers {before} → 0")
NO_WORKERS_WHY = Text(
    "making a batch takes {make:.2f} ms, handing it over from a worker {receive:.2f} ms",
    "生成一个批次需要 {make:.2f} ms，从工作进程传递过来需要 {receive:.2f} ms",
)
NO_WORKERS_RULE = Text(
    "data wait over 10 % of a step while batches lie ready",
    "有批次就绪，但等待数据仍超过一个轮次的 10 %",
)
PARALLEL = Text("num_parallel_workers {before} → {after}", "num_parallel_workers {before} → {after}")
PARALLEL_WHY = Text(
    "the pipeline {stages:list} delivers a batch in {make:.1f} ms; the rest of a step takes {rest:.1f} ms",
    "数据管道 {stages:list} 每 {make:.1f} ms 交付一个批次；一个轮次的其余部分需要 {rest:.1f} ms",
)
PARALLEL_RULE = Text("data wait over 10 % of a step", "等待数据超过一个轮次的 10 %")
PREFETCH = Text("prefetch_factor {before} → {after}", "prefetch_factor {before} → {after}")
PREFETCH_WHY = Text(
    "the slowest percent of steps takes {ratio:.1f} times the usual, and follows the data wait (correlation"
    " {corr:.2f})",
    "最慢的 1 % 轮次耗时是平常的 {ratio:.1f} 倍，且与等待数据相关（相关系数 {corr:.2f}）",
)
PREFETCH_RULE = Text(
    "p99 over 1.5 times the median, correlated with the data wait",
    "p99 超过中位数的 1.5 倍，且与等待数据相关",
)
PERSISTENT = Text("persistent_workers False → True", "persistent_workers False → True")
PERSISTENT_WHY = Text(
    "starting the workers costs {ms:.0f} ms in each epoch of {steps:.0f} steps",
    "每个 epoch（{steps:.0f} 个轮次）启动工作进程需要 {ms:.0f} ms",
)
PERSISTENT_RULE = Text("epoch starts over 5 % of the training's time", "epoch 开头超过训练时间的 5 %")
STAGE = Text("make {stage} cheaper", "降低 {stage} 的开销")
STAGE_WHY = Text(
    "{stage} takes {share:.0%} of a sample ({ms:.2f} ms); without it the step could not be faster than predicted here",
    "{stage} 占一个样本的 {share:.0%}（{ms:.2f} ms）；即使去掉它，轮次也不会快于此处的预测",
)
STAGE_RULE = Text("one function over 50 % of a sample", "单个函数超过一个样本的 50 %")
SAMPLES = Text("look at the samples {indices:list}", "检查样本 {indices:list}")
SAMPLES_WHY = Text(
    "they take up to {ms:.1f} ms, the usual one {usual:.2f} ms",
    "它们最多需要 {ms:.1f} ms，平常的样本需要 {usual:.2f} ms",
)
SAMPLES_RULE = Text("a sample over 10 times the usual one", "样本耗时超过平常的 10 倍")
GAP = Text("shorten what happens between two steps", "减少两个轮次之间的工作")
GAP_WHY = Text(
    "{ms:.1f} ms of Python between the update and the next batch (logging, .item(), or data made in the loop)",
    "更新之后到下一批次之间有 {ms:.1f} ms 的 Python 代码（日志、.item()，或在循环中生成数据）",
)
GAP_RULE = Text("gap over 5 % of a step and 1 ms", "轮次间隙超过一个轮次的 5 % 且超过 1 ms")
GRADIENTS = Text("shorten what happens between backward and the update", "减少反向与更新之间的工作")
GRADIENTS_WHY = Text(
    "{ms:.1f} ms between the end of backward and the update (clipping, unscaling, logging of gradients)",
    "反向结束到更新之间有 {ms:.1f} ms（裁剪、反缩放、记录梯度）",
)
GRADIENTS_RULE = Text("over 5 % of a step and 1 ms", "超过一个轮次的 5 % 且超过 1 ms")
OPTIMIZER = Text("fused=True in {optimizer}", "{optimizer} 使用 fused=True")
OPTIMIZER_WHY = Text(
    "the update takes {share:.0%} of a step; on the CPU {optimizer} goes from parameter to parameter unless told so",
    "更新占一个轮次的 {share:.0%}；在 CPU 上 {optimizer} 默认逐个参数更新",
)
OPTIMIZER_RULE = Text("optimizer over 10 % of a step and 1 ms", "优化器超过一个轮次的 10 % 且超过 1 ms")
PERIODIC = Text("move what happens every {every} steps out of the way", "将每 {every} 个轮次发生一次的工作移出训练路径")
PERIODIC_WHY = Text(
    "every {every} steps one takes {ms:.1f} ms more, in {segment}",
    "每 {every} 个轮次有一个多用 {ms:.1f} ms，耗时在{segment}",
)
PERIODIC_RULE = Text(
    "slow steps at equal distances that cost over 2 % of all time",
    "等间隔出现的慢轮次，占全部时间的 2 % 以上",
)
FIRST = Text("cache what is compiled", "缓存编译结果")
FIRST_WHY = Text(
    "the first step took {first:.1f} s, {ratio:.0f} times the usual one",
    "第一个轮次用了 {first:.1f} s，是平常的 {ratio:.0f} 倍",
)
FIRST_RULE = Text(
    "first step over 1 s and 5 times the others, most of it compiling",
    "第一个轮次超过 1 s 且为其他轮次的 5 倍，其中大部分是编译",
)
RECOMPILED = Text("avoid compiling again", "避免重新编译")
RECOMPILED_WHY = Text(
    "{count:count} later {count:plural step|steps} compiled again (first at step {step}), {seconds:.1f} s in all: new"
    " shapes, most often",
    "之后有 {count:count} 个轮次重新编译（最早在轮次 {step}），共 {seconds:.1f} s：通常是出现了新的形状",
)
RECOMPILED_RULE = Text("more than 2 steps after the first compile", "第一个之后有 2 个以上的轮次在编译")
STRAGGLER = Text("find out why rank {rank} is slow in {segment}", "查明逻辑卡 {rank} 在{segment}上为何较慢")
STRAGGLER_WHY = Text(
    "rank {rank} needs {ms:.1f} ms for {segment}, the others {usual:.1f} ms; step times are equal, for all wait for it",
    "逻辑卡 {rank} 的{segment}需要 {ms:.1f} ms，其他卡需要 {usual:.1f} ms；轮次时间相同，因为所有卡都在等它",
)
STRAGGLER_RULE = Text("a segment over 1.2 times the median of the ranks", "某一部分超过各卡中位数的 1.2 倍")

# ── what is not known ────────────────────────────────────────────────────────────────────────────────────────────────
NO_LOADER = Text(
    "no data loader was seen: batches made by the loop itself count as gap",
    "没有看到数据加载器：循环自己生成的批次计入轮次间隙",
)
NO_BATCHES = Text(
    "how long samples take was not measured: {framework} makes them in threads of its own",
    "没有测量样本的耗时：{framework} 在自己的线程中生成样本",
)
NO_MODEL = Text(
    "no prediction for other worker counts: the model of the loader is more than {percent:.0%} off the step it was made"
    " from",
    "不预测其他 num_workers：加载器模型与测得的轮次相差超过 {percent:.0%}",
)
NO_LOAD = Text(
    "how busy the machine was is not known: the training was shorter than a second",
    "机器负载未知：训练不到一秒",
)
ONE_FIGURE = Text(
    "forward, backward and update run as one compiled graph and are one figure, forward",
    "前向、反向与更新作为一张编译图运行，合为“前向”一项",
)
THE_HOST = Text(
    "times are the host's: work an accelerator does later is not in them",
    "时间为主机侧时间：加速器异步执行的工作不在其中",
)
DISTURBED = Text(
    "other programs kept {others:.1f} cores busy: figures on a quiet machine will differ",
    "其他程序占用了 {others:.1f} 个核：空闲机器上的数字会不同",
)

# ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────────────
NOTHING = Text(
    "nothing to gain was found: of {step:.2f} ms a step, {compute:.0%} is forward, loss, backward and update",
    "没有发现可以改进之处：一个轮次 {step:.2f} ms，其中 {compute:.0%} 为前向、损失、反向与更新",
)
KEEP = Text("keep it: {where}", "保留：{where}")
KEPT = Text(
    "{before:.2f} → {after:.2f} ms measured ({gain:.0%} less)",
    "测得 {before:.2f} → {after:.2f} ms（减少 {gain:.0%}）",
)
ROLLED_BACK = Text(
    "rolled back: {before:.2f} → {after:.2f} ms measured, no gain beyond noise (±{noise:.1%})",
    "已放弃：测得 {before:.2f} → {after:.2f} ms，收益不超过噪声（±{noise:.1%}）",
)
SLOWER = Text(
    "do not: {before:.2f} → {after:.2f} ms measured, {loss:.0%} slower",
    "不要使用：测得 {before:.2f} → {after:.2f} ms，慢了 {loss:.0%}",
)
DIED = Text(
    "do not: the training ended with {how} under it",
    "不要使用：训练在此设置下以 {how} 结束",
)
TIMED_OUT = Text(
    "not decided: it did not reach {steps} steps within {seconds:.0f} s",
    "未定：{seconds:.0f} 秒内未完成 {steps} 个轮次",
)
NOT_APPLIED = Text(
    "not decided: the change found nothing to change in this program",
    "未定：程序中没有可应用该改动的地方",
)
TOO_FEW_STEPS = Text(
    "not decided: the training has only {steps} steps to measure",
    "未定：训练只有 {steps} 个可测量的轮次",
)
SIGNAL = Text("signal {name}", "信号 {name}")
EXIT_CODE = Text("exit code {code}", "退出码 {code}")
WRITE_LINE = Text("{file}:{line}: {name} in `{code}`", "{file}:{line}：在 `{code}` 中设置 {name}")
WRITE_VARIABLE = Text("start the command with {name}", "以 {name} 启动命令")
WRITE_CODE = Text("{code}", "{code}")
NO_COMMAND = Text(
    "{run} does not know its command; record one with  misstep run <command>",
    "{run} 没有记录命令；请用  misstep run <命令>  重新记录",
)
NO_TRACE = Text(
    "{run} has no step trace; it was recorded by an earlier misstep, or not one step ended",
    "{run} 没有轮次耗时记录；它由较早版本的 misstep 记录，或没有完成任何轮次",
)
