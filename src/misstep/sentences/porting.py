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

# ── determinism ──────────────────────────────────────────────────────────────────────────────────────────────────────

NO_COMMAND = Text("{command} cannot be started: {why}", "无法启动 {command}：{why}")
COMMAND_FAILED = Text(
    "the command failed with exit code {code}: {tail}; make it run through first",
    "命令以退出码 {code} 失败：{tail}；请先让它正常运行",
)
NO_TRAINING = Text(
    "no PyTorch training step was seen in `{command}`: nothing passed through a network with gradients; only PyTorch is"
    " watched so far",
    "在 `{command}` 中没有看到 PyTorch 训练轮次：没有数据带梯度通过网络；目前只支持 PyTorch",
)
CAUSES: dict[str, Text] = {
    "seed": Text(
        "the generator of {detail} is not seeded; call {fix} before anything draws",
        "{detail} 的随机数生成器没有设置种子；请在抽取任何随机数之前调用 {fix}",
    ),
    "clock": Text(
        "the seed itself differs ({detail}): it comes from a clock or from the process; write a number",
        "种子本身不同（{detail}）：它来自时钟或进程；请写成固定的数",
    ),
    "shuffle": Text(
        "the same samples come in another order: pass DataLoader(generator=torch.Generator().manual_seed(1)), or seed"
        " before the loader is made",
        "样本相同但顺序不同：请使用 DataLoader(generator=torch.Generator().manual_seed(1))，或在创建加载器之前设置种子",
    ),
    "workers": Text(
        "the samples that {detail} data workers make differ: seed inside worker_init_fn, with"
        " misstep.train.seed_worker",
        "{detail} 个数据进程生成的样本不同：请在 worker_init_fn 中设置种子，可使用 misstep.train.seed_worker",
    ),
    "dropout": Text(
        "{detail} at {where} draws other masks: nothing seeds it, or something draws in between",
        "{where} 处的 {detail} 抽取的掩码不同：没有设置种子，或其间有其他抽取",
    ),
    "drawn": Text("{detail} at {where} draws other numbers", "{where} 处的 {detail} 抽取的数值不同"),
    "hash": Text(
        "the order of a set or the hash of a string differs from run to run: sort before iterating, or set"
        " PYTHONHASHSEED=0 (with it two runs are the same)",
        "集合的顺序或字符串的哈希每次运行不同：请在遍历前排序，或设置 PYTHONHASHSEED=0（设置后两次运行相同）",
    ),
    "threads": Text(
        "the number of threads changes the numbers, first in {detail} at {where}: sums run in another order; fix"
        " OMP_NUM_THREADS, or call torch.set_num_threads(1)",
        "线程数会改变数值，首先出现在 {where} 处的 {detail}：求和顺序不同；请固定 OMP_NUM_THREADS，"
        "或调用 torch.set_num_threads(1)",
    ),
    "operator": Text(
        "{detail} at {where} makes other numbers of the same ones: a non-deterministic operator, or memory that was"
        " never written; try torch.use_deterministic_algorithms(True)",
        "{where} 处的 {detail} 由相同输入得到不同结果：非确定性算子，或从未写入的内存；"
        "请尝试 torch.use_deterministic_algorithms(True)",
    ),
    "outside": Text(
        "{detail} at {where} gets another value from outside: a clock, a file, the environment",
        "{where} 处的 {detail} 从外部得到不同的值：时钟、文件或环境",
    ),
    "unknown": Text(
        "no single source explains it: generators, order, workers, operators and hashes were looked at",
        "没有单一来源可以解释：已检查随机数生成器、顺序、数据进程、算子和哈希",
    ),
}
SEED_CALLS: dict[str, str] = {
    "torch": "torch.manual_seed(1)",
    "numpy": "numpy.random.seed(1)",
    "python": "random.seed(1)",
}
