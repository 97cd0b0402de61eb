"""What the commands `misstep graph` and `misstep compare-modes` say, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_GRAPH = Text(
    "Show what was compiled in a run: graphs, breaks, compilations and their cost.\n\n"
    "For torch.compile and for graph mode and jit of MindSpore. The facts are recorded by every `misstep run`, at every"
    " level. Exit code 3 when code runs uncompiled although it should not, or hooks are not called.",
    "显示一次训练中编译了什么：计算图、断图、重复编译及其开销。\n\n"
    "适用于 torch.compile 以及 MindSpore 的 Graph 模式与 jit。每次 `misstep run` 在任何级别都会记录这些信息。"
    "若代码未按要求编译运行，或有钩子未被调用，退出码为 3。",
)
HELP_EAGER = Text(
    "A run of the same program without compilation: tells after how many steps compiling pays off.",
    "同一程序未编译的一次训练：用于计算编译在多少个轮次后收回开销。",
)
HELP_RANK = Text("The rank to look at; the first by default.", "要查看的 rank；默认为第一个。")
NOTHING = Text(
    "{run}: nothing was compiled while misstep watched ({steps:count} {steps:plural step|steps})",
    "{run}：misstep 监测期间没有编译任何代码（{steps:count} 个轮次）",
)
HEAD = Text(
    "{run}: {graphs:count} {graphs:plural graph|graphs} of {functions:count} {functions:plural function|functions},"
    " {breaks:count} {breaks:plural break|breaks}, {seconds:.1f} s of compilation",
    "{run}：{functions:count} 个函数共 {graphs:count} 个计算图，{breaks:count} 处断图，编译用时 {seconds:.1f} 秒",
)
STAGES = Text("compilation by stage: {parts:list}", "编译各阶段用时：{parts:list}")
STAGE = Text("{name} {seconds:.2f} s", "{name} {seconds:.2f} 秒")
STAGE_NAMES: dict[str, Text] = {
    "trace": Text("tracing Python", "追踪 Python"),
    "autograd": Text("differentiation", "自动微分"),
    "inductor": Text("code generation", "代码生成"),
    "backward": Text("backward graphs", "反向图"),
}
FIRST_STEP = Text(
    "first step {first:.2f} s, then {steady:.4f} s a step", "首个轮次 {first:.2f} 秒，之后每轮次 {steady:.4f} 秒"
)
FIRST_ONLY = Text(
    "first step {first:.2f} s; no later step ran without compiling",
    "首个轮次 {first:.2f} 秒；之后没有不含编译的轮次",
)
PAYS = Text(
    "uncompiled {eager:.4f} s a step: compiling pays off after {steps:count} steps",
    "未编译时每轮次 {eager:.4f} 秒：编译在 {steps:count} 个轮次后收回开销",
)
NEVER_PAYS = Text(
    "uncompiled {eager:.4f} s a step: compiled code is not faster here, so compiling never pays off",
    "未编译时每轮次 {eager:.4f} 秒：此处编译后并不更快，开销无法收回",
)
FUNCTION = Text(
    "{name} ({place}): {graphs:count} {graphs:plural graph|graphs}, {operators:count} operators, {seconds:.2f} s",
    "{name}（{place}）：{graphs:count} 个计算图，{operators:count} 个算子，{seconds:.2f} 秒",
)
FUNCTION_UNCOUNTED = Text(
    "{name} ({place}): {graphs:count} {graphs:plural graph|graphs}, {seconds:.2f} s",
    "{name}（{place}）：{graphs:count} 个计算图，{seconds:.2f} 秒",
)
AGAIN = Text("compiled again because {reason}", "重新编译的原因：{reason}")
AGAIN_TIMES = Text("compiled again {times:count} times because {reason}", "重新编译 {times:count} 次的原因：{reason}")
AGAIN_MORE = Text("and {count:count} more times", "另外还有 {count:count} 次")
AGAIN_ADVICE = Text(
    "if the sizes vary by nature, pass dynamic=True or torch._dynamo.mark_dynamic; otherwise pad, or drop_last=True",
    "若形状本来就会变化，请使用 dynamic=True 或 torch._dynamo.mark_dynamic；否则请填充，或设置 drop_last=True",
)
AGAIN_ADVICE_MINDSPORE = Text(
    "if the sizes vary by nature, give the varying dimension as None in set_inputs or input_signature; otherwise pad,"
    " or drop_remainder=True",
    "若形状本来就会变化，请在 set_inputs 或 input_signature 中将变化的维度设为 None；"
    "否则请填充，或设置 drop_remainder=True",
)
GAVE_UP = Text("runs uncompiled from some call on: {reason}", "从某次调用起不再编译运行：{reason}")
BREAK = Text("break at {place} in {function}: {reason}", "断图于 {place}（{function}）：{reason}")
HOOKS = Text(
    "{hooks:count} {hooks:plural hook is|hooks are} not called: registered after compilation, on {modules:count}"
    " {modules:plural module|modules} ({function}, {place}); register before the first compiled call, or"
    " call torch._dynamo.reset() afterwards",
    "{hooks:count} 个钩子未被调用：在编译之后注册于 {modules:count} 个模块（{function}，{place}）；"
    "请在首次编译调用之前注册，或注册后调用 torch._dynamo.reset()",
)

ABOUT_COMPARE_MODES = Text(
    "Check that compiled code computes what the program says.\n\n"
    "Runs COMMAND to a step and compares there: with torch.compile every operator of every graph, forward and backward,"
    " against uncompiled code and float64; with MindSpore the step in graph mode and in PyNative. Training itself is"
    " not changed. Exit code 3 when compiled code is wrong.",
    "检查编译后的代码是否与程序的计算一致。\n\n"
    "将 COMMAND 运行到某一轮次并在该处比较：对于 torch.compile，将每个计算图的每个算子（正向与反向）与未编译的代码及"
    " float64 比较；对于 MindSpore，比较 Graph 模式与 PyNative 模式下的该轮次。训练本身不受影响。"
    "编译结果有误时退出码为 3。",
)
HELP_COMPARED_STEP = Text("The step to compare; training ends after it.", "要比较的轮次；训练在其后结束。")
NO_TRAINING = Text(
    "no training was seen, so nothing was compared (the command ended with exit code {code})",
    "没有看到训练，因此未作比较（命令的退出码为 {code}）",
)
NOTHING_COMPARED = Text(
    "{run}: no compiled graph ran in step {step} or before it, so nothing was compared; name a later step with --step",
    "{run}：在轮次 {step} 及之前没有编译的计算图运行，因此未作比较；请用 --step 指定更后的轮次",
)
SAME = Text(
    "graph {graph}: {count:count} {count:plural operator|operators} compared, all within rounding (largest relative"
    " error {compiled:.1e})",
    "计算图 {graph}：比较了 {count:count} 个算子，均在舍入误差之内（最大相对误差 {compiled:.1e}）",
)
UNSTABLE = Text(
    "unstable formula: {operator} in graph {graph} is off by {eager:.1e} uncompiled and {compiled:.1e} compiled,"
    " against float64; {place}",
    "公式不稳定：计算图 {graph} 中的 {operator} 与 float64 相比，"
    "未编译时误差 {eager:.1e}，编译后 {compiled:.1e}；{place}",
)
MISCOMPILED = Text(
    "miscompiled: {operator} in graph {graph}, relative error {compiled:.1e} against {eager:.1e} explained by rounding;"
    " {place}",
    "编译错误：计算图 {graph} 中的 {operator}，相对误差 {compiled:.1e}，而舍入只能解释 {eager:.1e}；{place}",
)
MISCOMPILED_BACKWARD = Text(
    "miscompiled: the gradient of {operator} in graph {graph}, relative error {compiled:.1e} against {eager:.1e}"
    " explained by rounding; {place}",
    "编译错误：计算图 {graph} 中 {operator} 的梯度，相对误差 {compiled:.1e}，而舍入只能解释 {eager:.1e}；{place}",
)
UNCHECKED = Text(
    "graph {graph} could not be compared, and nothing is known of it: {why}",
    "计算图 {graph} 无法比较，情况未知：{why}",
)
REPRODUCTION = Text(
    "by itself, with its inputs: {file} in the directory of run {run}", "单独复现（含输入）：运行 {run} 目录中的 {file}"
)
RANDOM = Text(
    "{count:count} {count:plural operator draws|operators draw} random numbers; their own values were taken as drawn",
    "{count:count} 个算子使用随机数；其自身的值按实际抽取结果使用",
)
