"""Rules about what flows through the network, forwards and backwards."""

from __future__ import annotations

from misstep.sentences.text import Text

DEAD_RELU = Text("{share:.0%} of the units after {layer} are dead", "{layer} 之后 {share:.0%} 的单元已失活")
DEAD_RELU_FIX = Text(
    "lower the learning rate, look at the bias of {layer} and at the scale of the inputs, or use LeakyReLU or GELU",
    "降低学习率，检查 {layer} 的偏置和输入的尺度，或改用 LeakyReLU、GELU",
)
DEAD_RELU_WHEN = Text(
    "0 for every sample of the batch in three looks or more: all units (error), nine of ten (warning)",
    "三次以上查看中对批次的所有样本都为 0：全部单元（错误），十分之九（警告）",
)
SATURATED = Text(
    "{kind} after {layer} is saturated: {share:.0%} of its outputs are flat",
    "{layer} 之后的 {kind} 已饱和：{share:.0%} 的输出处于平坦区",
)
SATURATED_FIX = Text(
    "normalise the inputs, use a smaller initialisation (Xavier), or a normalisation layer before it",
    "对输入做归一化，使用更小的初始化（Xavier），或在其前加归一化层",
)
SATURATED_WHEN = Text(
    "nine of ten outputs where the derivative is below 2 %, in three looks or more (error from 97 %)",
    "三次以上查看中，十分之九的输出处导数小于 2 %（97 % 起为错误）",
)
ALIKE = Text("all units of {layer} are the same, and stay the same", "{layer} 的所有单元相同，并一直相同")
ALIKE_FIX = Text(
    "initialise it with random numbers (kaiming_uniform_, xavier_uniform_): equal units get equal gradients",
    "用随机数初始化（kaiming_uniform_、xavier_uniform_）：相同的单元得到相同的梯度",
)
ALIKE_WHEN = Text("equal rows after three or more updates that moved them", "经过三次以上更新后各行仍相同")
ZERO_INIT = Text("{count:count} layers are all zero and get no gradient", "{count:count} 层全为零，且得不到梯度")
ZERO_INIT_FIX = Text("initialise them with random numbers", "用随机数初始化它们")
ZERO_INIT_WHEN = Text(
    "constant weights whose gradient is exactly 0 in every look", "权重为常数，且每次查看梯度都恰为 0"
)
VANISHING = Text("the gradient vanishes on its way to {layer}", "梯度在传到 {layer} 的途中消失")
VANISHING_FIX = Text(
    "use ReLU or GELU instead of sigmoid and tanh, residual connections, normalisation layers, a larger initialisation",
    "用 ReLU 或 GELU 代替 sigmoid、tanh，加残差连接、归一化层，或增大初始化",
)
VANISHING_WHEN = Text(
    "gradient over weight of the first layer is less than 1e-5 of that of the last (error below 1e-7)",
    "首层的梯度与权重之比小于末层的 1e-5（小于 1e-7 为错误）",
)
EXPLODING = Text(
    "the values grow from layer to layer: {layer} gives {size:number}", "数值逐层增大：{layer} 的输出为 {size:number}"
)
EXPLODING_FIX = Text(
    "use the framework's default initialisation, or a normalisation layer", "使用框架默认的初始化，或加归一化层"
)
EXPLODING_WHEN = Text(
    "the first loss is ten times that of guessing, or activations above 1e4 at the first step",
    "最初的损失是随机猜测的十倍，或第一轮激活大于 1e4",
)
EVAL_LEFT_ON = Text("the network trains in evaluation mode", "网络在评估模式下训练")
EVAL_LEFT_ON_FIX = Text("call model.train() after every evaluation", "每次评估之后调用 model.train()")
EVAL_LEFT_ON_WHEN = Text(
    "normalisation or dropout layers, training mode at first and evaluation mode in later training steps (error);"
    " evaluation mode from the beginning (warning)",
    "有归一化或 dropout 层，起初为训练模式而之后的训练轮次为评估模式（错误）；从一开始就是评估模式（警告）",
)
TRAIN_IN_EVALUATION = Text("evaluation runs in training mode", "评估在训练模式下进行")
TRAIN_IN_EVALUATION_FIX = Text(
    "call model.eval() before it, and model.train() after it", "在评估之前调用 model.eval()，之后调用 model.train()"
)
TRAIN_IN_EVALUATION_WHEN = Text(
    "the trained network is called without gradients while its normalisation or dropout layers are in training mode",
    "训练中的网络在不计算梯度时被调用，而其归一化或 dropout 层处于训练模式",
)
OVERFLOWS = Text("most updates are left out because gradients overflow", "多数更新因梯度溢出而被跳过")
OVERFLOWS_FIX = Text(
    "train in bfloat16, lower the learning rate, or look for the operator misstep show names",
    "用 bfloat16 训练，降低学习率，或查看 misstep show 指出的算子",
)
OVERFLOWS_WHEN = Text("more than half of the updates after the first ten", "前十次之后，超过一半的更新")
CONSTANT_PREDICTION = Text("the prediction is the same for every sample", "对每个样本的预测都相同")
CONSTANT_PREDICTION_FIX = Text(
    "something on the way wipes out the input: look at the first layer whose outputs are equal (misstep run --level"
    " module, then misstep show)",
    "途中有环节抹去了输入：请查看第一个输出相同的层（misstep run --level module，然后 misstep show）",
)
CONSTANT_PREDICTION_WHEN = Text(
    "samples differ, predictions by less than 1e-5 of their size, in the last three looks",
    "样本不同，最近三次查看中预测之差小于其大小的 1e-5",
)
