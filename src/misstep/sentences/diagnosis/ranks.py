"""Rules that compare the processes of a distributed training."""

from __future__ import annotations

from misstep.sentences.text import Text

DIFFER = Text(
    "the ranks have different weights since step {step}: first {name}",
    "自轮次 {step} 起各逻辑卡的权重不同：最先是 {name}",
)
DIFFER_FIX = Text(
    "wrap the network in DistributedDataParallel (MindSpore: set gradients_mean and parallel_mode), and call its"
    " forward, not that of the module inside",
    "用 DistributedDataParallel 包装网络（MindSpore：设置 gradients_mean 和 parallel_mode），"
    "并调用它的前向而不是内部模块的",
)
DIFFER_WHEN = Text(
    "equal samples of the weights have different digests at the same step, and nothing is sharded",
    "同一轮次权重样本的摘要不同，且没有切分",
)
SAME_DATA = Text("all ranks train on the same batches", "所有逻辑卡用相同的批次训练")
SAME_DATA_FIX = Text(
    "use DistributedSampler (MindSpore: num_shards and shard_id)",
    "使用 DistributedSampler（MindSpore：num_shards 与 shard_id）",
)
SAME_DATA_WHEN = Text("equal digests of the batches in four steps or more", "四个以上轮次的批次摘要相同")
