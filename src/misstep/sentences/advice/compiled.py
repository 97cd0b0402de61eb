"""What is said about compiled code: graph breaks and their rewrites."""

from __future__ import annotations

from misstep.sentences.text import Text

BREAK_PRINT = Text(
    "move it out of the compiled code, or put it behind `if not torch.compiler.is_compiling():`",
    "将其移出编译代码，或放在 `if not torch.compiler.is_compiling():` 之后",
)
BREAK_BRANCH = Text(
    "the branch depends on the value of a tensor: use torch.where, or torch.cond for whole blocks",
    "分支取决于张量的值：请改用 torch.where，整段代码可用 torch.cond",
)
BREAK_ITEM = Text(
    "keep the value as a tensor, or set torch._dynamo.config.capture_scalar_outputs = True",
    "保留为张量，或设置 torch._dynamo.config.capture_scalar_outputs = True",
)
BREAK_NUMPY = Text("use the torch function of the same name instead of NumPy's", "请用同名的 torch 函数代替 NumPy 函数")
BREAK_DISABLED = Text(
    "the function is excluded from compilation on purpose; leave it, or call it outside of the compiled code",
    "该函数被有意排除在编译之外；可保持不变，或在编译代码之外调用",
)
BREAK_BACKWARD = Text(
    "compile the forward and the loss, and call backward() outside", "只编译正向与损失函数，在外部调用 backward()"
)
