"""The page about a run's speed."""

from __future__ import annotations

from misstep.sentences.text import Text

WORDS: dict[str, Text] = {
    "change": Text("change", "改动"),
    "data": Text("waiting for data", "等待数据"),
    "dont": Text("rolled back", "已放弃"),
    "empty": Text("queue empty on {share} of asks", "{share} 的取数请求遇到空队列"),
    "emptyUnknown": Text("queue not visible", "队列不可见"),
    "every": Text("a slow one every {n} steps", "每 {n} 个轮次有一个慢轮次"),
    "first": Text("first step {ms}, compiling {compile}", "第一个轮次 {ms}，编译 {compile}"),
    "here": Text("made on the training thread", "在训练线程上生成"),
    "firstOnly": Text("first step {ms}", "第一个轮次 {ms}"),
    "kept": Text("kept", "已保留"),
    "last": Text("last {n} steps", "最近 {n} 个轮次"),
    "lastAll": Text("all steps", "全部轮次"),
    "loader": Text("data loader", "数据加载器"),
    "making": Text("{ms} to make a batch, num_workers {n}", "生成一个批次需要 {ms}，num_workers 为 {n}"),
    "measured": Text("measured", "实测"),
    "median": Text("median {ms}", "中位数 {ms}"),
    "memory": Text("memory, most", "内存最大值"),
    "memoryHow": Text("of the process; before a run: misstep memory", "进程占用；运行前预测：misstep memory"),
    "memoryNone": Text("not looked at", "未查看"),
    "none": Text("This run has no step trace.", "该训练没有轮次耗时记录。"),
    "notMeasured": Text("Not measured", "未测量"),
    "nothing": Text("nothing to gain found", "没有发现可改进之处"),
    "operators": Text("Operators", "算子"),
    "operators.how": Text("own time in {n} profiled steps, by source line", "{n} 个剖析轮次中的自身时间，按代码行"),
    "operators.none": Text(
        "No step was profiled. Do it with",
        "没有剖析过任何轮次。可运行",
    ),
    "pipeline": Text("What a sample is made of", "一个样本由什么组成"),
    "predicted": Text("predicted", "预测"),
    "reachable": Text("reachable", "可达到"),
    "reachable.measured": Text("measured with --apply", "已用 --apply 实测"),
    "reachable.predicted": Text("predicted; measure it with --apply", "预测；可用 --apply 实测"),
    "step": Text("step, mean", "轮次均值"),
    "spread": Text("p50 {p50} · p99 {p99}", "p50 {p50} · p99 {p99}"),
    "title": Text("Where a step goes", "一个轮次的时间花在哪里"),
    "try": Text("Measure it:", "实测："),
    "what": Text("What to change", "建议的改动"),
}
