"""What `misstep lint` objects to in a training script, and the change that mends it."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── the network ──────────────────────────────────────────────────────────────────────────────────────────────────────

LAYERS_IN_LIST = Text(
    "self.{name} is a plain list or dict: its layers are not registered, so parameters() and the optimizer miss them",
    "self.{name} 是普通的 list 或 dict：其中的层未被注册，parameters() 和优化器都取不到",
)
LAYERS_IN_LIST_FIX = Text("wrap it: nn.{container}([...])", "改用 nn.{container}([...])")
NO_SUPER_INIT = Text(
    "{name}.__init__ assigns attributes without calling super().__init__()",
    "{name}.__init__ 没有调用 super().__init__() 就给属性赋值",
)
NO_SUPER_INIT_FIX = Text("call super().__init__() first", "请先调用 super().__init__()")
LAYER_IN_FORWARD = Text(
    "{layer} is created inside {method}: every call gets fresh, untrained weights",
    "{layer} 在 {method} 中创建：每次调用都是新的、未经训练的权重",
)
LAYER_IN_FORWARD_FIX = Text("create it once in __init__ and keep it in self", "在 __init__ 中创建一次并保存到 self")
ONE_LAYER_REPEATED = Text(
    "[layer] * n repeats one layer n times: all positions share the same weights",
    "[layer] * n 把同一层重复 n 次：所有位置共享同一组权重",
)
ONE_LAYER_REPEATED_FIX = Text(
    "create each: [Layer(...) for _ in range(n)]", "请逐个创建：[Layer(...) for _ in range(n)]"
)
PARAMETER_NOT_LEAF = Text(
    "self.{name} is the result of an operation on a Parameter, not a Parameter: no optimizer updates it",
    "self.{name} 是对 Parameter 运算的结果，而不是 Parameter：优化器不会更新它",
)
PARAMETER_NOT_LEAF_FIX = Text(
    "apply the operation inside: nn.Parameter(... * scale); move the whole module with .to(device)",
    "请在内部运算：nn.Parameter(... * scale)；用 .to(device) 移动整个模块",
)
TENSOR_NOT_PARAMETER = Text(
    "self.{name} requires a gradient but is no Parameter: parameters(), state_dict() and .to() miss it",
    "self.{name} 需要梯度却不是 Parameter：parameters()、state_dict() 和 .to() 都取不到",
)
TENSOR_NOT_PARAMETER_FIX = Text("use self.{name} = nn.Parameter(...)", "改用 self.{name} = nn.Parameter(...)")
FROZEN_IN_VAIN = Text(
    "setting .{name} here only adds an attribute: nothing is frozen or unfrozen",
    "此处设置 .{name} 只是增加了一个属性：没有任何参数被冻结或解冻",
)
FROZEN_IN_VAIN_FIX = Text(
    "call module.requires_grad_({value}), or set requires_grad on each parameter",
    "请调用 module.requires_grad_({value})，或逐个参数设置 requires_grad",
)
OPTIMIZER_FIRST = Text(
    "{name} is replaced after the optimizer was created (line {line}): the new layer is never trained",
    "{name} 在优化器创建（第 {line} 行）之后被替换：新层永远不会被训练",
)
OPTIMIZER_FIRST_FIX = Text("create the optimizer after this line", "请在此行之后创建优化器")

# ── lines without effect ─────────────────────────────────────────────────────────────────────────────────────────────

NOT_CALLED = Text("`{code}` is not called: the parentheses are missing", "`{code}` 没有被调用：缺少括号")
NOT_CALLED_FIX = Text("write {code}()", "请写成 {code}()")
RESULT_DISCARDED = Text(
    "the result of `{code}` is discarded: the operation does not change its argument",
    "`{code}` 的结果被丢弃：该运算不会改变其参数",
)
RESULT_DISCARDED_FIX = Text("assign the result", "请把结果赋值给变量")
MOVED_IN_VAIN = Text(
    "`{code}` returns a moved copy and leaves {name} where it is", "`{code}` 返回移动后的副本，{name} 本身没有移动"
)
MOVED_IN_VAIN_FIX = Text("write {name} = {code}", "请写成 {name} = {code}")
OPTIMIZER_IN_LOOP = Text(
    "{name} is created anew for every batch: momentum and step counts start from zero each time",
    "{name} 在每个 batch 中重新创建：动量和轮次计数每次都从零开始",
)
OPTIMIZER_IN_LOOP_FIX = Text("create it once, before the loop", "请在循环之前创建一次")
RATE_HUGE = Text(
    "a learning rate of {rate} for {name} is far above what trains (limit {limit})",
    "{name} 的学习率 {rate} 远高于能够训练的范围（上限 {limit}）",
)
RATE_HUGE_FIX = Text("start from 1e-3 for Adam, 1e-1 for SGD", "Adam 可从 1e-3 开始，SGD 可从 1e-1 开始")

# ── the training loop ────────────────────────────────────────────────────────────────────────────────────────────────

ZERO_GRAD_MISSING = Text(
    "the gradients of {name} are never cleared: every step adds to those of all steps before",
    "{name} 的梯度从未清零：每个轮次都累加到之前所有轮次的梯度上",
)
ZERO_GRAD_MISSING_FIX = Text("call {name}.zero_grad() before backward()", "请在 backward() 之前调用 {name}.zero_grad()")
ZERO_GRAD_MISPLACED = Text(
    "{name}.zero_grad() stands between backward() and step(): the update sees no gradient",
    "{name}.zero_grad() 位于 backward() 与 step() 之间：更新时梯度已被清零",
)
ZERO_GRAD_MISPLACED_FIX = Text("move it before backward()", "请移到 backward() 之前")
STEP_MISSING = Text(
    "gradients are computed but no optimizer steps: the weights never change",
    "计算了梯度，但没有调用优化器的 step()：权重永远不变",
)
STEP_MISSING_FIX = Text("call optimizer.step() after backward()", "请在 backward() 之后调用 optimizer.step()")
BACKWARD_MISSING = Text(
    "{name}.step() runs without any backward(): there is no gradient to apply",
    "调用了 {name}.step()，但没有任何 backward()：没有可用的梯度",
)
BACKWARD_MISSING_FIX = Text("call loss.backward() before it", "请先调用 loss.backward()")
SCHEDULER_FIRST = Text(
    "the scheduler steps before the optimizer: the first learning rate is skipped",
    "学习率调度器先于优化器执行 step()：第一个学习率被跳过",
)
SCHEDULER_FIRST_FIX = Text(
    "call scheduler.step() after optimizer.step()", "请在 optimizer.step() 之后调用 scheduler.step()"
)
SCHEDULER_PER_BATCH = Text(
    "{name} counts epochs but steps once per batch: the learning rate decays far too early",
    "{name} 按 epoch 计数，却在每个 batch 后执行：学习率会过早衰减",
)
SCHEDULER_PER_BATCH_FIX = Text(
    "move it to the end of the epoch, or give its periods in batches", "请移到 epoch 末尾，或把周期按 batch 数给出"
)
CLIP_MISPLACED = Text(
    "the gradients are not clipped between backward() and step(): clipping here has no effect on the update",
    "梯度裁剪不在 backward() 与 step() 之间：此处裁剪不影响更新",
)
CLIP_MISPLACED_FIX = Text("move it between backward() and step()", "请移到 backward() 与 step() 之间")
CLIP_SCALED = Text(
    "gradients are clipped while still multiplied by the loss scale: the limit means something else at every scale",
    "裁剪的是仍乘有损失缩放系数的梯度：阈值的含义随缩放系数变化",
)
CLIP_SCALED_FIX = Text("call {scaler}.unscale_(optimizer) first", "请先调用 {scaler}.unscale_(optimizer)")
SCALER_INCOMPLETE = Text("{name} is used without {name}.{missing}()", "使用了 {name}，但没有调用 {name}.{missing}()")
SCALER_INCOMPLETE_FIX = Text(
    "the order is scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update()",
    "顺序为 scaler.scale(loss).backward()、scaler.step(optimizer)、scaler.update()",
)
NOT_AVERAGED = Text(
    "gradients of {every} batches are summed, not averaged: the update is {every} times as large",
    "{every} 个 batch 的梯度只是相加而未取平均：更新量放大为 {every} 倍",
)
NOT_AVERAGED_FIX = Text("divide the loss: (loss / {every}).backward()", "请先除：(loss / {every}).backward()")
LOSS_KEEPS_GRAPH = Text(
    "{target} collects {loss} with its whole graph: memory grows with every step",
    "{target} 连同整个计算图一起保存了 {loss}：内存逐轮次增长",
)
LOSS_KEEPS_GRAPH_FIX = Text("use {loss}.item()", "请使用 {loss}.item()")

# ── the objective ────────────────────────────────────────────────────────────────────────────────────────────────────

SOFTMAX_TWICE = Text(
    "cross entropy applies softmax itself; its input has already passed {activation}",
    "交叉熵自身会计算 softmax，而输入已经过 {activation}",
)
SOFTMAX_TWICE_FIX = Text("pass raw scores: remove the {activation}", "请传入原始输出：去掉 {activation}")
SIGMOID_TWICE = Text(
    "this loss applies sigmoid itself; its input has already passed {activation}",
    "该损失函数自身会计算 sigmoid，而输入已经过 {activation}",
)
SIGMOID_TWICE_FIX = Text("pass raw scores: remove the {activation}", "请传入原始输出：去掉 {activation}")
NO_SIGMOID = Text(
    "binary cross entropy expects probabilities; its input comes straight from {tail}",
    "二元交叉熵需要概率，而输入直接来自 {tail}",
)
NO_SIGMOID_FIX = Text("use BCEWithLogitsLoss", "请改用 BCEWithLogitsLoss")
NLL_WITHOUT_LOG = Text(
    "NLLLoss expects log-probabilities; its input comes from {tail}", "NLLLoss 需要对数概率，而输入来自 {tail}"
)
NLL_WITHOUT_LOG_FIX = Text(
    "end in log_softmax, or use CrossEntropyLoss", "请以 log_softmax 结尾，或改用 CrossEntropyLoss"
)
RELU_LOGITS = Text(
    "the scores pass ReLU before the loss: no class can get a negative score, and half of them stop learning",
    "输出在损失之前经过 ReLU：得分不能为负，部分类别会停止学习",
)
RELU_LOGITS_FIX = Text("remove the last ReLU", "请去掉最后的 ReLU")
NO_GRADIENT = Text(
    "the loss is computed from {name}(), which passes no gradient: no weight learns from it",
    "损失由 {name}() 的结果计算，梯度无法通过：没有权重能从中学习",
)
NO_GRADIENT_FIX = Text("compute the loss from the network's raw output", "请用网络的原始输出计算损失")
LOSS_REBUILT = Text(
    "backward() starts from `{code}`, a new tensor without history: no weight gets a gradient",
    "backward() 从没有历史的新张量 `{code}` 开始：没有权重得到梯度",
)
LOSS_REBUILT_FIX = Text("call backward() on the loss itself", "请直接对损失调用 backward()")
SWAPPED = Text(
    "the arguments look swapped: {first} comes before {second}, the loss takes (output, target)",
    "参数似乎颠倒：{first} 在 {second} 之前，而损失函数的参数为 (output, target)",
)
SWAPPED_FIX = Text("call it with ({second}, {first})", "请按 ({second}, {first}) 调用")
NO_DIM = Text(
    "{name} without dim guesses the axis from the number of dimensions", "{name} 没有给出 dim，会根据维数猜测轴"
)
NO_DIM_FIX = Text("pass dim=-1, or the axis of the classes", "请传入 dim=-1 或类别所在的轴")
VIEW_FOR_TRANSPOSE = Text(
    "`{code}` does not swap the axes: it deals the values out in another order",
    "`{code}` 并不交换轴，而是按另一种顺序重新排布数据",
)
VIEW_FOR_TRANSPOSE_FIX = Text("use transpose(0, 1)", "请使用 transpose(0, 1)")
DROPOUT_ALWAYS = Text(
    "this dropout stays on in evaluation: functional dropout does not know the module's mode",
    "这里的 dropout 在评估时仍然生效：函数式 dropout 不知道模块的模式",
)
DROPOUT_ALWAYS_FIX = Text("pass training=self.training", "请传入 training=self.training")
GRADIENTS_UNUSED = Text(
    "the gradients in {name} are computed and never used: the weights do not change",
    "{name} 中的梯度计算后从未使用：权重不会改变",
)
GRADIENTS_UNUSED_FIX = Text("call optimizer({name})", "请调用 optimizer({name})")

# ── evaluation and data ──────────────────────────────────────────────────────────────────────────────────────────────

EVAL_STAYS = Text(
    "{name}.eval() is called between epochs and train() never is: from the second epoch on, dropout and batch"
    " normalisation train in evaluation mode",
    "在 epoch 之间调用了 {name}.eval()，却没有再调用 train()：从第二个 epoch 起，dropout 和批归一化在评估模式下训练",
)
EVAL_STAYS_FIX = Text("call {name}.train() at the start of each epoch", "请在每个 epoch 开始时调用 {name}.train()")
EVAL_MISSING = Text(
    "evaluation runs in training mode: dropout is active and batch normalisation learns from this data",
    "评估在训练模式下进行：dropout 生效，批归一化会从这些数据中学习",
)
EVAL_MISSING_FIX = Text(
    "call model.eval() before it and model.train() after it", "请在之前调用 model.eval()，之后调用 model.train()"
)
UNDER_NO_GRAD = Text(
    "backward() runs under no_grad: nothing computed here has a gradient",
    "backward() 在 no_grad 中执行：此处的计算没有梯度",
)
UNDER_NO_GRAD_FIX = Text("take training out of the no_grad block", "请把训练移出 no_grad")
NOT_SHUFFLED = Text(
    "{name} is not shuffled: every epoch sees the samples in the same order",
    "{name} 没有打乱：每个 epoch 的样本顺序相同",
)
NOT_SHUFFLED_FIX = Text("pass shuffle=True", "请传入 shuffle=True")
KEEP_PROB = Text(
    "keep_prob counts what is kept; MindSpore 2 counts what is dropped with p",
    "keep_prob 表示保留概率；MindSpore 2 用 p 表示丢弃概率",
)
KEEP_PROB_FIX = Text("pass p = 1 - keep_prob", "请传入 p = 1 - keep_prob")

# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────

NO_FILE = Text("no such file: {path}", "没有这个文件：{path}")
UNREADABLE = Text("{path} cannot be read: {why}", "无法读取 {path}：{why}")
NOT_PYTHON = Text("{path}:{line}: not valid Python: {why}", "{path}:{line}：不是合法的 Python：{why}")
NO_RULE = Text(
    "no rule {name!r}{nearest}; all of them:  misstep lint --rules",
    "没有规则 {name!r}{nearest}；查看全部：misstep lint --rules",
)
