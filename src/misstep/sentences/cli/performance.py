"""What `misstep advise`, `memory` and `profile` say at the terminal, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_ADVISE = Text(
    "Show where training time goes, and what to change.\n\n"
    "Reads the step trace that every run has, at every level. Each advice comes with its evidence and a predicted step"
    " time with an interval. --apply runs the recorded command again for some steps, with the change and without, and"
    " keeps only what measures faster; no file of yours is edited, but the command does whatever it does in its first"
    " steps.",
    "说明训练各轮次的时间花在哪里，以及该改什么。\n\n"
    "读取每次训练在任何级别都有的轮次耗时记录。每条建议都给出依据以及带区间的预测轮次时间。"
    "--apply 会重新运行所记录的命令若干轮次，分别带改动和不带改动，只保留测得更快的改动；不会修改你的文件，"
    "但命令在最初若干轮次里做的事都会照做。",
)
HELP_APPLY = Text(
    "Run the command with each advised change and without it, and keep what measures faster.",
    "分别带每项建议的改动和不带改动运行命令，保留测得更快的改动。",
)
HELP_TRY = Text(
    "Also try this, such as num_workers=4, OMP_NUM_THREADS=1, fused=True, autocast=bfloat16, channels_last=True or"
    " compile=True; may be repeated.",
    "另外尝试该项，如 num_workers=4、OMP_NUM_THREADS=1、fused=True、autocast=bfloat16、channels_last=True 或"
    " compile=True；可重复。",
)
HELP_TRIAL_STEPS = Text("Steps of each trial.", "每次试运行的轮次数。")
HELP_TRIAL_SECONDS = Text("Longest time of each trial.", "每次试运行的最长时间（秒）。")
HELP_PAIRS = Text(
    "Runs with the change, each beside one without.", "带改动运行的次数，每次都与一次不带改动的运行配对。"
)

STEP_LINE = Text("step {ms:.2f} ms: {parts:list}", "一个轮次 {ms:.2f} ms：{parts:list}")
PART = Text("{name} {share:.0%}", "{name} {share:.0%}")
SPREAD = Text(
    "p50 {p50:.2f} · p90 {p90:.2f} · p99 {p99:.2f} ms over {steady:count} steady {steady:plural step|steps}"
    " of {steps:count}",
    "{steps:count} 个轮次中 {steady:count} 个平稳轮次：p50 {p50:.2f} · p90 {p90:.2f} · p99 {p99:.2f} ms",
)
FIRST = Text(
    "first step {first:.0f} ms, of it {compile:.0f} ms compiling",
    "第一个轮次 {first:.0f} ms，其中编译 {compile:.0f} ms",
)
EPOCHS = Text(
    "{epochs:count} epochs; beginning one costs {ms:.1f} ms",
    "{epochs:count} 个 epoch；每个开头多用 {ms:.1f} ms",
)
OWN = Text(
    "misstep itself took {ms:.2f} ms of each step, not counted above",
    "misstep 自身每个轮次用时 {ms:.2f} ms，未计入上面",
)
OUTLIERS = Text("slow steps: {steps:list}", "慢轮次：{steps:list}")
OUTLIER = Text("{step} ({ms:.1f} ms, {segment})", "{step}（{ms:.1f} ms，{segment}）")
OF_RANK = Text("rank {rank}: ", "逻辑卡 {rank}：")
VERDICT = Text("{bound}: {why}", "{bound}：{why}")
LOADER = Text(
    "loader {dataset} (num_workers={workers}, batch_size={batch}) {line}",
    "加载器 {dataset}（num_workers={workers}，batch_size={batch}）{line}",
)
MAKING = Text(
    "a batch takes {make:.2f} ms to make ({cpu:.2f} ms of CPU), a sample {sample:.3f} ms",
    "生成一个批次需要 {make:.2f} ms（CPU {cpu:.2f} ms），一个样本 {sample:.3f} ms",
)
QUEUE = Text(
    "{queue:.1f} batches lie ready on average; {empty:.0%} of asks find none",
    "平均有 {queue:.1f} 个批次就绪；{empty:.0%} 的取数请求遇到空队列",
)
MACHINE = Text(
    "{own:.1f} of {allowed:.0f} cores are this training's, {others:.1f} are busy with other programs",
    "{allowed:.0f} 个核中本训练使用 {own:.1f} 个，其他程序占用 {others:.1f} 个",
)
PREDICTIONS = Text("predicted step", "预测的轮次时间")
NOW = Text("now", "当前")
ADVICE = Text("what to change", "建议的改动")
PREDICTED = Text("predicted {ms:.2f} ms ({low:.2f} to {high:.2f})", "预测 {ms:.2f} ms（{low:.2f} 至 {high:.2f}）")
APPLY_HINT = Text("measure it:  misstep advise {run} --apply", "实测：  misstep advise {run} --apply")
NOT_MEASURED = Text("not measured: {what}", "未测量：{what}")
TRIAL_BEGINS = Text(
    "trying {name}: {pairs} runs with and {pairs} without, {steps} steps each, in {folder}: the command writes what it"
    " always writes in its first steps",
    "尝试 {name}：带改动和不带改动各运行 {pairs} 次，每次 {steps} 个轮次，目录 {folder}："
    "命令会照常写出它在最初轮次中写的内容",
)
TRIAL_RUNS = Text("{name}: run {number} of {total}", "{name}：第 {number} 次，共 {total} 次")
AGAINST = Text("; predicted {ms:.2f} ms", "；预测 {ms:.2f} ms")
AS_BUSY = Text(
    ", {ms:.2f} ms on the machine as busy as it is now",
    "，按机器当前的繁忙程度为 {ms:.2f} ms",
)
NOTHING_TO_TRY = Text("no advised change can be tried by misstep itself", "没有 misstep 可以自行尝试的改动")
BAD_TRY = Text(
    "--try {given} is not NAME=VALUE; known names: {names:list}, or an environment variable in capitals",
    "--try {given} 不是 名称=值；已知名称：{names:list}，或大写的环境变量",
)
NO_LOADER_TO_TRY = Text(
    "--try {given} needs a data loader, and {run} has none",
    "--try {given} 需要数据加载器，但 {run} 中没有",
)
HELP_BUCKETS = Text(
    "Measure gradients and wire of a training on several ranks, and cut its all-reduces anew (PyTorch).",
    "测量多卡训练的梯度就绪时间与通信，重新切分 AllReduce（PyTorch）。",
)
BUCKETS = Text(
    "{gradients:count} gradients, {mb:.1f} MB, {ranks} ranks; an all-reduce takes {latency:.2f} ms and {rate:.0f} MB/s;"
    " backward ends at {backward:.1f} ms, the last all-reduce at {now:.1f} ms, with the best cut at {best:.1f} ms",
    "{gradients:count} 个梯度，{mb:.1f} MB，逻辑卡 {ranks} 张；"
    "一次 AllReduce 需要 {latency:.2f} ms 和 {rate:.0f} MB/s；"
    "反向结束于 {backward:.1f} ms，最后一次 AllReduce 结束于 {now:.1f} ms，最优切分时为 {best:.1f} ms",
)
BUCKET_LINES = Text(
    "bucket_cap_mb_list={caps}  ·  MindSpore: all_reduce_fusion_config={fusion}",
    "bucket_cap_mb_list={caps}  ·  MindSpore：all_reduce_fusion_config={fusion}",
)
