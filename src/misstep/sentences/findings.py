"""Faults found in a run: what, the evidence, and what to do."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── silent faults ────────────────────────────────────────────────────────────────────────────────────────────────────

WEIGHTS_UNCHANGED = Text(
    "{count:count} {count:plural weight|weights} did not change although the gradients are not zero",
    "{count:count} 个权重没有变化，尽管梯度不为零",
)
SAME_BITS = Text("{names:list}: bit for bit the same over the last updates", "{names:list}：最近几次更新前后逐位相同")
OPTIMIZER = Text("optimizer {optimizer}, learning rate {rate}", "优化器 {optimizer}，学习率 {rate}")
RATE_ZERO = Text("the learning rate is 0", "学习率为 0")
TOO_SMALL = Text(
    "the gradients vanish on the way back: the largest, {largest:.3g}, is too small to move a weight",
    "梯度在回传途中消失：最大的 {largest:.3g} 也太小，改变不了权重",
)
MINT_ON_CPU = Text(
    "on the CPU, MindSpore's in-place tensor operators have no effect, so mint.optim.SGD and Adam never update; use"
    " nn.SGD, nn.Adam or mindspore.experimental.optim",
    "在 CPU 上，MindSpore 的原地张量算子不起作用，因此 mint.optim 的 SGD 和 Adam 从不更新；"
    "请用 nn.SGD、nn.Adam 或 mindspore.experimental.optim",
)
OTHER_TENSORS = Text(
    "the optimizer may hold tensors that are not the model's: was it created before the model was moved or replaced?",
    "优化器持有的张量可能不是模型的：它是否在模型被搬移或替换之前创建？",
)
HIDDEN_NAN = Text(
    "{node} ({type}) hides NaN: {count:count} went in at step {step}, none came out",
    "{node}（{type}）掩盖了 NaN：轮次 {step} 输入 {count:count} 个，输出一个也没有",
)
TENSOR_HAS = Text("{address} has {found}", "{address} 的 {found}")
WRONG_VALUES = Text(
    "the loss stays finite while the network trains on wrong values; look at the inputs of this layer",
    "损失保持有限，网络却在错误的值上训练；请查看这一层的输入",
)

# ── loss scale ───────────────────────────────────────────────────────────────────────────────────────────────────────

LOSS_SCALE = Text("loss scale {scale:g} at step {step}", "轮次 {step} 的损失缩放为 {scale:g}")
OVERFLOWS_OFTEN = Text(
    "gradients overflow in half precision too often for loss scaling to help: look at the operator named in the skipped"
    " steps, lower the learning rate, or train in bfloat16",
    "半精度下梯度溢出过于频繁，损失缩放无济于事：请查看被跳过的轮次所指的算子，降低学习率，或用 bfloat16 训练",
)

# ── MindSpore ────────────────────────────────────────────────────────────────────────────────────────────────────────

NO_KERNEL = Text("{operator} has no kernel on this device", "{operator} 在此设备上没有内核")
NO_KERNEL_AT = Text("{operator} has no kernel on this device at {source}", "{operator} 在此设备上没有内核：{source}")
REPLACE_IT = Text("replace it, or run on a device that has it", "请替换它，或在支持它的设备上运行")
INSTEAD: dict[str, Text] = {
    operator: Text(
        f"use nn.{name}: mint.nn.{name} has no kernel on CPU", f"请用 nn.{name}：mint.nn.{name} 在 CPU 上没有内核"
    )
    for operator, name in {
        "Conv1DExt": "Conv1d",
        "Conv2DExt": "Conv2d",
        "Conv3DExt": "Conv3d",
        "LayerNormExt": "LayerNorm",
        "Embedding": "Embedding",
    }.items()
} | {
    "ConvolutionGrad": Text(
        "use nn.Conv2d: the convolutions of mint have no kernel on CPU", "请用 nn.Conv2d：mint 的卷积在 CPU 上没有内核"
    ),
    "NPUGetFloatStatusV2": Text(
        "TrainOneStepWithLossScaleCell needs Ascend; misstep.train's loss scale managers and amp.DynamicLossScaler with"
        " amp.all_finite work on CPU",
        "TrainOneStepWithLossScaleCell 需要 Ascend；misstep.train 的损失缩放管理器，以及 amp.DynamicLossScaler 配合"
        " amp.all_finite，可在 CPU 上使用",
    ),
    "TensorDump": Text(
        "ops.TensorDump does not compile for CPU; misstep run --dump 'PATTERN' keeps the tensor instead",
        "ops.TensorDump 不能为 CPU 编译；可用 misstep run --dump 'PATTERN' 保存该张量",
    ),
}
"""By operator without a kernel on CPU: what to use instead."""
NOT_COMPILED = Text("MindSpore could not compile the network", "MindSpore 无法编译网络")
NOT_COMPILED_AT = Text("MindSpore could not compile the network at {source}", "MindSpore 无法编译网络：{source}")
NODE = Text("node {node}", "节点 {node}")
GRAPH_IS_LESS = Text(
    "a graph supports less than Python does; the same code runs eagerly with"
    " mindspore.set_context(mode=mindspore.PYNATIVE_MODE)",
    "图模式支持的语法少于 Python；同样的代码可以用 mindspore.set_context(mode=mindspore.PYNATIVE_MODE) 动态运行",
)
MODES_DIFFER = Text("graph mode and PyNative give different results: {where}", "图模式与 PyNative 的结果不同：{where}")
LOOK_AT_FIRST = Text(
    "the code depends on Python state, a fused operator or random numbers; look at the first output or gradient that"
    " differs, and train in PyNative mode meanwhile",
    "代码依赖 Python 状态、融合算子或随机数；请查看第一个不同的输出或梯度，在此期间用 PyNative 模式训练",
)
RUN_THE_COMMAND = Text(
    "the code depends on Python state, a fused operator or random numbers; train in PyNative mode meanwhile; the"
    " command below shows which operator differs first",
    "代码依赖 Python 状态、融合算子或随机数；在此期间用 PyNative 模式训练；下面的命令显示哪个算子最先不同",
)
