"""What is said of how gradients are cut into all-reduces."""

from __future__ import annotations

from misstep.sentences.text import Text

NOT_MEASURED = Text(
    "gradients of {run} were not measured: no DistributedDataParallel trained 20 steps in it; record a run with"
    "  misstep run torchrun --nproc-per-node 2 train.py",
    "没有测到 {run} 的梯度：其中没有 DistributedDataParallel 训练满 20 个轮次；请用"
    "  misstep run torchrun --nproc-per-node 2 train.py  重新记录",
)
CUT = Text(
    "{best} all-reduces instead of {now} promise {gain:.1%} of a step",
    "改为 {best} 次 AllReduce（原 {now} 次），预计节省一个轮次的 {gain:.1%}",
)
LEAVE = Text(
    "leave the buckets alone: the best cut ({best} all-reduces instead of {now}) promises {gain:.1%} of a step",
    "不必调整分桶：最优切分（{best} 次 AllReduce，原 {now} 次）只能节省一个轮次的 {gain:.1%}",
)
