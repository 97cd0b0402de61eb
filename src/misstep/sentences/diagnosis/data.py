"""Rules about what goes in: inputs, labels, batches."""

from __future__ import annotations

from misstep.sentences.text import Text

SAME_BATCH = Text("every step trains on the same batch", "每个轮次都用同一个批次训练")
SAME_BATCH_FIX = Text(
    "iterate over the loader (for batch in loader) instead of next(iter(loader)) in every step",
    "遍历加载器（for batch in loader），而不是每个轮次调用 next(iter(loader))",
)
SAME_BATCH_WHEN = Text(
    "a data loader with more samples than a batch holds, and equal digests in all steps",
    "加载器的样本多于一个批次，而所有轮次的摘要都相同",
)
UNNORMALISED = Text("the inputs are not normalised", "输入没有归一化")
UNNORMALISED_FIX = Text(
    "subtract the mean and divide by the standard deviation (images: x / 255)", "减去均值并除以标准差（图像：x / 255）"
)
UNNORMALISED_WHEN = Text(
    "values beyond 30 with a standard deviation above 10; a hint on its own, a finding when signals saturate, die or"
    " the loss stays",
    "数值超过 30 且标准差大于 10；单独出现时为提示，若信号饱和、失活或损失不变则为发现",
)
CONSTANT_INPUT = Text("all samples of the batch are the same", "批次中的所有样本都相同")
CONSTANT_INPUT_FIX = Text(
    "look at how a sample is read: an index that is not used, or an array that is written over",
    "请检查样本的读取：索引没有被使用，或数组被覆盖",
)
CONSTANT_INPUT_WHEN = Text("no sample differs from another in three looks or more", "三次以上查看中没有任何样本不同")
CONSTANT_LABELS = Text("all labels are the same class", "所有标签都是同一类别")
CONSTANT_LABELS_FIX = Text("look at how labels are read", "请检查标签的读取方式")
CONSTANT_LABELS_WHEN = Text(
    "one class in every batch looked at, with 16 samples or more", "每个查看过的批次（16 个以上样本）都只有一个类别"
)
SORTED_LABELS = Text("the batches are sorted by class", "批次按类别排序")
SORTED_LABELS_FIX = Text("shuffle: DataLoader(…, shuffle=True)", "打乱数据：DataLoader(…, shuffle=True)")
SORTED_LABELS_WHEN = Text(
    "one class in every batch looked at, and another one in others",
    "每个查看过的批次只有一个类别，而不同批次的类别不同",
)
ONE_CLASS = Text("the network always answers with the most frequent class", "网络总是回答最多的类别")
ONE_CLASS_FIX = Text("weigh the classes in the loss, or sample them evenly", "在损失中给类别加权，或均衡采样")
ONE_CLASS_WHEN = Text(
    "more than 90 % of the targets are one class, and all predictions, in the last three looks",
    "最近三次查看中，超过 90 % 的标签是同一类别，且所有预测都是它",
)
UNSCALED_TARGETS = Text("the targets of the regression are very large", "回归的标签数值很大")
UNSCALED_TARGETS_FIX = Text("scale them to mean 0 and standard deviation 1", "把它们缩放到均值 0、标准差 1")
UNSCALED_TARGETS_WHEN = Text("beyond a thousand, and the loss does not fall", "超过一千，且损失不下降")
