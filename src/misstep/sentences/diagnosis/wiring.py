"""Rules about who is connected to whom: weights, gradients, optimizers, calls."""

from __future__ import annotations

from misstep.sentences.text import Text

NOT_IN_OPTIMIZER = Text(
    "{count:count} of {all:count} weights never change: they are not in the optimizer",
    "{all:count} 个权重中有 {count:count} 个从不变化：它们不在优化器中",
)
NOT_IN_OPTIMIZER_FIX = Text(
    "give them to the optimizer: create it after the last layer was put in, from model.parameters()",
    "把它们交给优化器：在所有层就位之后，用 model.parameters() 创建优化器",
)
CREATE_AFTER = Text("create the optimizer after {line}", "请在 {line} 之后创建优化器")
REGISTER_THEM = Text(
    "keep layers in nn.ModuleList or nn.ModuleDict (MindSpore: nn.CellList), tensors in nn.Parameter",
    "把层放入 nn.ModuleList 或 nn.ModuleDict（MindSpore：nn.CellList），张量用 nn.Parameter",
)
NOT_IN_OPTIMIZER_WHEN = Text(
    "a gradient arrives in every look, no optimizer holds the weight, and not one bit of it changes; a head trained on"
    " a backbone that is left out is told as a hint",
    "每次查看都有梯度，没有优化器持有该权重，且其值逐位不变；若只训练头部而未把骨干网络交给优化器，仅作提示",
)
DETACHED = Text(
    "{count:count} of {all:count} weights get no gradient: the loss is not computed from them",
    "{all:count} 个权重中有 {count:count} 个没有梯度：损失不是由它们计算得到的",
)
DETACHED_FIX = Text(
    "look between {inner} and {outer} for detach(), .data, .item(), numpy(), no_grad() (MindSpore: stop_gradient)",
    "请检查 {inner} 与 {outer} 之间是否有 detach()、.data、.item()、numpy()、no_grad()（MindSpore：stop_gradient）",
)
DETACHED_WHEN = Text(
    "the optimizer holds and steps them, in no look is there a gradient, and layers behind them have one",
    "优化器持有并更新它们，每次查看都没有梯度，而其后的层有梯度",
)
UNUSED = Text(
    "{count:count} of {all:count} weights are never used by the loss",
    "{all:count} 个权重中有 {count:count} 个从未被损失用到",
)
UNUSED_FIX = Text(
    "call {inner} in forward, or leave it out of the network", "在 forward 中调用 {inner}，或将其移出网络"
)
UNUSED_WHEN = Text("as above, but nothing behind them has a gradient", "同上，但其后没有层有梯度")
LOSS_DETACHED = Text("the loss does not depend on any weight", "损失不依赖任何权重")
LOSS_DETACHED_FIX = Text(
    "compute the loss from the network's output as a tensor: no .item(), .detach(), numpy() or new tensor() on the way,"
    " and no requires_grad_() on the loss",
    "用网络输出的张量计算损失：途中不要用 .item()、.detach()、numpy() 或新建 tensor()，"
    "也不要对损失调用 requires_grad_()",
)
LOSS_DETACHED_WHEN = Text(
    "the graph of the loss is empty, or no weight of the network is in it", "损失的计算图为空，或其中没有网络的任何权重"
)
NO_ZERO_GRAD = Text(
    "gradients are never cleared: every update uses the sum of all gradients so far",
    "梯度从不清零：每次更新用的是至今所有梯度之和",
)
NO_ZERO_GRAD_FIX = Text("call optimizer.zero_grad() before backward", "在 backward 之前调用 optimizer.zero_grad()")
NO_ZERO_GRAD_WHEN = Text(
    "in nine of ten updates none of the gradients was cleared since the update before",
    "十次更新中有九次，自上次更新以来没有任何梯度被清零",
)
ZERO_GRAD_PART = Text(
    "only some gradients are cleared: the others add up from update to update", "只有部分梯度被清零：其余的逐次累加"
)
ZERO_GRAD_PART_FIX = Text(
    "clear them all: optimizer.zero_grad() instead of zero_grad() of one part",
    "全部清零：用 optimizer.zero_grad() 代替某一部分的 zero_grad()",
)
ZEROED_BEFORE_STEP = Text(
    "gradients are cleared between backward and the update: nothing is left to learn from",
    "梯度在 backward 与更新之间被清零：没有可学习的内容",
)
ZEROED_BEFORE_STEP_FIX = Text(
    "move zero_grad() before backward, or behind step()", "把 zero_grad() 移到 backward 之前，或 step() 之后"
)
ZEROED_BEFORE_STEP_WHEN = Text(
    "the last call before the update is zero_grad, and no gradient is left",
    "更新前的最后一次调用是 zero_grad，且没有梯度留下",
)
NO_STEP = Text("backward is called, but weights are never updated", "调用了 backward，但权重从未更新")
NO_STEP_FIX = Text("call optimizer.step() after backward", "在 backward 之后调用 optimizer.step()")
NO_STEP_WHEN = Text(
    "an optimizer was made, three or more backwards, no update, and no weight moves",
    "创建了优化器，三次以上 backward，没有更新，权重不变",
)
NO_BACKWARD = Text("the optimizer steps, but no gradient was ever computed", "优化器在更新，但从未计算梯度")
NO_BACKWARD_FIX = Text("call loss.backward() before optimizer.step()", "在 optimizer.step() 之前调用 loss.backward()")
NO_BACKWARD_WHEN = Text("three or more updates, no backward", "三次以上更新，没有 backward")
CLIP_TOO_SMALL = Text("gradients are clipped so far that nothing moves", "梯度被裁剪得过小，权重几乎不动")
CLIP_TOO_SMALL_FIX = Text(
    "clip to the usual norm (0.5 to 10), or not at all", "裁剪到常用的范数（0.5 到 10），或不裁剪"
)
CLIP_TOO_SMALL_WHEN = Text(
    "the norm before is a thousand times what is allowed, and layers move by less than 1e-5 of their size",
    "裁剪前的范数是允许值的一千倍以上，且各层的变化小于其大小的 1e-5",
)
CLIP_SCALED = Text(
    "gradients are clipped while they are still multiplied by the loss scale", "梯度在仍乘有损失缩放系数时就被裁剪"
)
CLIP_SCALED_FIX = Text("call scaler.unscale_(optimizer) before clipping", "在裁剪之前调用 scaler.unscale_(optimizer)")
CLIP_SCALED_WHEN = Text(
    "a gradient scaler is in use, and clip comes without unscale_", "使用了梯度缩放器，而裁剪前没有 unscale_"
)
CLIP_LATE = Text("gradients are clipped where it has no effect", "梯度裁剪放在了不起作用的位置")
CLIP_LATE_FIX = Text("clip between backward and step", "在 backward 与 step 之间裁剪")
CLIP_LATE_WHEN = Text("clip comes after the update, or before backward", "裁剪在更新之后，或在 backward 之前")
UNDONE = Text("every update is undone before the next step", "每次更新都在下一轮之前被撤销")
UNDONE_FIX = Text(
    "something loads or copies old weights inside the loop: move load_state_dict, deepcopy or the model's creation out",
    "循环内有代码载入或复制旧权重：请把 load_state_dict、deepcopy 或模型的创建移出循环",
)
UNDONE_WHEN = Text(
    "in neighbouring steps all weights are again what they were before the update",
    "相邻轮次中，所有权重又回到更新前的值",
)
HELD_TWICE = Text(
    "{count:count} weights are held by two optimizers that both step in the same step",
    "{count:count} 个权重被两个优化器持有，且两者在同一轮次都更新",
)
HELD_TWICE_FIX = Text("give each weight to one optimizer", "每个权重只交给一个优化器")
HELD_TWICE_WHEN = Text("both hold the very same weights", "两者持有完全相同的权重")
