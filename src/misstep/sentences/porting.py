"""What `misstep scan` and `misstep port` say about a call, and what `misstep determinism` says about a program."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── why a call has no certain counterpart ────────────────────────────────────────────────────────────────────────────

WHY: dict[str, Text] = {
    "not_in_map": Text("{name} is not in the map of calls", "API 映射表中没有 {name}"),
    "no_way": Text(
        "no counterpart of {name} came out the same on the CPU", "{name} 在 CPU 上没有任何候选接口得到相同结果"
    ),
    "starred": Text(
        "arguments are unpacked here; which ones, the source does not say", "此处解包参数，源码未说明有哪些"
    ),
    "unbound": Text("the arguments fit no known signature of {name}", "参数与 {name} 的任何已知签名都不匹配"),
    "absent": Text("the counterpart has no parameter {detail}", "对应接口没有参数 {detail}"),
    "fails_with": Text("every sample with {detail} came out different", "凡 {detail} 的样例结果都不同"),
    "depends_on": Text(
        "whether it is the same depends on {detail}, whose value the source does not show",
        "是否相同取决于 {detail}，而源码未给出它的值",
    ),
    "unseen": Text("no sample was executed with {detail}", "没有执行过带 {detail} 的样例"),
    "gradient": Text("the result is the same, the gradient is not", "结果相同，但梯度不同"),
    "drawn": Text("random: the distribution is the same, the numbers are not", "随机：分布相同，数值不同"),
    "outside_loop": Text(
        "MindSpore computes gradients with value_and_grad and hands them to the optimizer",
        "MindSpore 用 value_and_grad 求梯度，再交给优化器",
    ),
    "data_loader": Text(
        "becomes GeneratorDataset(...).batch(...), with the names of its columns",
        "改为 GeneratorDataset(...).batch(...)，并给出列名",
    ),
    "initializer": Text("the same distribution; numbers are drawn otherwise", "分布相同；抽取的数值不同"),
    "as_value": Text(
        "{name} is handed on by name; its arguments are others in MindSpore",
        "{name} 被作为值传递；其参数在 MindSpore 中不同",
    ),
    "columns": Text("how many columns the dataset has, the source does not show", "源码未显示数据集有几列"),
    "unknown_receiver": Text("what {name} is called on is not known", "不清楚 {name} 的调用对象是什么"),
    "by_name": Text("taken for a tensor because only tensors have {name}", "因为只有张量才有 {name}，故视为张量"),
}

# ── graph mode ───────────────────────────────────────────────────────────────────────────────────────────────────────

HAZARDS: dict[str, Text] = {
    "branch": Text(
        "a branch on the value of a tensor: graph mode compiles it only without side effects; use ops.where, or keep"
        " PyNative mode",
        "按张量的值分支：图模式只在没有副作用时才能编译；请改用 ops.where，或使用 PyNative 模式",
    ),
    "print": Text(
        "print runs while compiling, not while training: use ops.Print()",
        "print 在编译时执行，而不是训练时：请使用 ops.Print()",
    ),
    "numpy": Text(
        "NumPy sees no tensor values in graph mode: use the function of mindspore.ops",
        "图模式下 NumPy 看不到张量的值：请使用 mindspore.ops 中的函数",
    ),
    "value": Text(
        "{name} reads a value out of the graph: keep it a tensor",
        "{name} 把值从图中取出：请保持为张量",
    ),
    "state": Text(
        "self.{name} is set inside construct: in graph mode make it a Parameter and use ops.assign",
        "在 construct 中设置 self.{name}：图模式下请改为 Parameter 并使用 ops.assign",
    ),
    "try": Text("try is not compiled in graph mode: test the condition before", "图模式不编译 try：请事先判断条件"),
}

# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────

NO_SOURCE = Text(
    "no Python file in {paths:list}; name a .py file or a folder that has some",
    "{paths:list} 中没有 Python 文件；请给出 .py 文件或包含它们的文件夹",
)
NO_TORCH = Text(
    "{path} imports no PyTorch: there is nothing to port; `misstep scan {path} --to torch` reads MindSpore",
    "{path} 没有导入 PyTorch，无可移植；`misstep scan {path} --to torch` 可读取 MindSpore 源码",
)
OUT_EXISTS = Text(
    "{path} exists and was not written by misstep port; pass --out DIR, or remove it",
    "{path} 已存在且不是 misstep port 写出的；请用 --out DIR 指定其他位置，或删除它",
)
CHANGED_BY_HAND = Text(
    "{path} was changed after misstep port wrote it; pass --out DIR to keep your work, or remove it",
    "{path} 在 misstep port 写出后被修改过；请用 --out DIR 保留您的修改，或删除它",
)
PORT_TO_TORCH = Text(
    "port writes MindSpore only; `misstep scan {path} --to torch` lists what each call becomes",
    "port 只能写出 MindSpore；`misstep scan {path} --to torch` 可列出每个调用的对应写法",
)
NOT_WRITTEN = Text("{path} cannot be written: {why}; pass --out DIR", "无法写入 {path}：{why}；请用 --out DIR 指定位置")
TOO_LONG = Text("the check was not done after {seconds} seconds", "{seconds} 秒后检查仍未完成")
