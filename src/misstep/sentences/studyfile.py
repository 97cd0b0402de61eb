"""What can be wrong with a study file, in both languages; the file and the line stand before each."""

from __future__ import annotations

from misstep.sentences.text import Text

AT = Text("{place}: {what}", "{place}: {what}")
"""How every refusal begins: `study.yaml:7: …`, which editors turn into a link."""

CANNOT_READ = Text(
    "cannot read {path}: {why}. To make one from a script:  misstep tune --like 'python train.py'",
    "无法读取 {path}：{why}。根据脚本生成：  misstep tune --like 'python train.py'",
)
NOT_UTF8 = Text("this is no UTF-8 text: {why}", "文件不是 UTF-8 文本：{why}")
NOT_YAML = Text("this is no YAML: {why}", "不是合法的 YAML：{why}")
NOT_A_STUDY = Text(
    "a study file is a mapping with command, parameters and target; this is a {kind}."
    " Begin with:  misstep tune --like 'python train.py'",
    "study 文件是包含 command、parameters 和 target 的映射，而此处是 {kind}。"
    "可从这里开始：  misstep tune --like 'python train.py'",
)
KINDS: dict[str, Text] = {
    "list": Text("list", "列表"),
    "word": Text("word", "单词"),
    "number": Text("number", "数字"),
    "boolean": Text("true or false", "true 或 false"),
    "value": Text("value", "单个值"),
}
COMMAND_MISSING = Text(
    "command is missing: what one trial runs, like:  python train.py --lr {{lr}}",
    "缺少 command：一次试验执行的命令，如：  python train.py --lr {{lr}}",
)
PARAMETERS_MISSING = Text(
    "parameters is missing: what is searched, like  lr: {{low: 1e-5, high: 0.1, log: true}}",
    "缺少 parameters：要搜索的参数，如  lr: {{low: 1e-5, high: 0.1, log: true}}",
)
TARGET_MISSING = Text(
    "target is missing: what is optimized, like  target: {{name: loss, goal: minimize}}",
    "缺少 target：要优化的目标，如  target: {{name: loss, goal: minimize}}",
)
WRITTEN_TWICE = Text("{key!r} is written twice; this one counts", "{key!r} 出现了两次，以此处为准")
UNKNOWN_KEY = Text("unknown key {key!r}{nearest}", "未知的键 {key!r}{nearest}")
UNKNOWN_NAME = Text("{key} {name!r} is not known{nearest}", "{key} {name!r} 不存在{nearest}")
UNKNOWN_WORD = Text("{word!r} is unknown{nearest}", "未知的取值 {word!r}{nearest}")
NOT_ONE_OF = Text("{key} is {value!r}; it is one of {allowed:list}", "{key} 为 {value!r}，应为 {allowed:list} 之一")
NOT_A_MAPPING = Text("{key} is a mapping with {keys:list}", "{key} 应为映射，可用的键有 {keys:list}")
NOT_A_LIST_OF = Text("{key} is a list of {allowed:list}", "{key} 应为列表，可取 {allowed:list}")
NOT_A_TEXT = Text("{key} is a text, not {value!r}", "{key} 应为文本，而不是 {value!r}")
NOT_WHOLE = Text(
    "{key} is a whole number from {least}, not {value!r}", "{key} 应为不小于 {least} 的整数，而不是 {value!r}"
)
NOT_POSITIVE = Text("{key} is a number above 0, not {value!r}", "{key} 应为大于 0 的数，而不是 {value!r}")
NOT_A_DURATION = Text(
    "{key} is {value!r}; write seconds, or 90s, 10m, 2h, 1d", "{key} 为 {value!r}；请写秒数，或 90s、10m、2h、1d"
)

# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────

NO_PROGRAM = Text(
    "no program {program!r} was found. Try it first:  misstep run {command}",
    "找不到程序 {program!r}。请先单独执行：  misstep run {command}",
)
NO_PROGRAM_BUT_SCRIPT = Text(
    "no program {program!r} was found; a Python script is run as:  python {program}",
    "找不到程序 {program!r}；Python 脚本应这样执行：  python {program}",
)
BAD_NAME = Text(
    "study is {name!r}; use letters, digits, '.', '-' and '_'", "study 为 {name!r}；请使用字母、数字、'.'、'-' 和 '_'"
)
COMMAND_SPLIT = Text("command cannot be split into words: {why}", "无法将 command 拆分为单词：{why}")
COMMAND_EMPTY = Text(
    "command is empty; write what one trial runs, like:  python train.py --lr {{lr}}",
    "command 为空；请写一次试验执行的命令，如：  python train.py --lr {{lr}}",
)
NO_SUCH_PARAMETER = Text(
    "{{{name}}} is no parameter{nearest}; braces that are meant are doubled: {{{{{name}}}}}",
    "{{{name}}} 不是参数{nearest}；若需要花括号本身，请写两遍：{{{{{name}}}}}",
)
ENVIRONMENT = Text("environment is a mapping, like {{LR: '{{lr}}'}}", "environment 应为映射，如 {{LR: '{{lr}}'}}")

# ── the target ───────────────────────────────────────────────────────────────────────────────────────────────────────

TARGETS = Text(
    "targets is a list, like [{{name: loss}}, {{name: memory_mb}}]",
    "targets 应为列表，如 [{{name: loss}}, {{name: memory_mb}}]",
)
SAME_TARGET = Text("two targets have the same name", "两个目标同名")
TARGET_NAME = Text(
    "a target needs a name: loss, step_seconds, memory_mb, or a recorded scalar",
    "目标需要 name：loss、step_seconds、memory_mb 或已记录的标量",
)
BAD_PATTERN = Text("pattern is no regular expression: {why}", "pattern 不是正则表达式：{why}")
PATTERN_GROUP = Text(
    r"pattern needs one group around the number, like  accuracy: ([\d.]+)",
    r"pattern 需要用一个括号组包住数字，如  accuracy: ([\d.]+)",
)

# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────────

PARAMETERS = Text(
    "parameters is a mapping, like  lr: {{low: 1e-5, high: 0.1, log: true}}",
    "parameters 应为映射，如  lr: {{low: 1e-5, high: 0.1, log: true}}",
)
NO_NAME = Text(
    "{name!r} is no name: letters, digits and '_', not beginning with a digit",
    "{name!r} 不能作为名称：只能包含字母、数字和 '_'，且不以数字开头",
)
A_PARAMETER = Text(
    "{name} is a mapping, like {{low: 0, high: 1}} or {{choice: [a, b]}}",
    "{name} 应为映射，如 {{low: 0, high: 1}} 或 {{choice: [a, b]}}",
)
RANGE_OR_CHOICE = Text("give either a range or a choice", "范围与 choice 只能给出其一")
NEEDS_RANGE = Text(
    "{name} needs bounds: [low, high], low and high, choice, or knob",
    "{name} 需要 bounds: [low, high]、low 与 high、choice 或 knob",
)
NO_WHOLE_NUMBER = Text("there is no whole number from {low} to {high}", "{low} 到 {high} 之间没有整数")
LOG_ABOVE_0 = Text("log needs a range above 0, not from {low}", "log 要求范围大于 0，而下限为 {low}")
PRIOR_OF_LOG = Text(
    "prior is for a float with log: true, like  lr: {{low: 1e-5, high: 1.0, log: true, prior: range_test}}",
    "prior 用于 log: true 的浮点参数，如  lr: {{low: 1e-5, high: 1.0, log: true, prior: range_test}}",
)
STEP_ABOVE_0 = Text("step is {step!r}; it is a number above 0", "step 为 {step!r}，应为大于 0 的数")
LOG_OR_STEP = Text("log and step do not go together", "log 与 step 不能同时使用")
STEP_OF_INT = Text("step is {step}, but {name} is an int", "step 为 {step}，但 {name} 是整数")
DECIMAL = Text("decimal is {value!r}; it is a number of digits", "decimal 为 {value!r}，应为小数位数")
BOUNDS = Text("bounds is a list of two numbers, [low, high]", "bounds 应为两个数的列表 [low, high]")
HIGH_MISSING = Text("high is missing", "缺少 high")
NO_NUMBER = Text("{value!r} is no number", "{value!r} 不是数字")
EMPTY_RANGE = Text(
    "the range from {low} to {high} is empty; write the smaller number first",
    "{low} 到 {high} 的范围为空；请将较小的数写在前面",
)
CHOICE = Text("choice is a list of at least one value", "choice 应为至少含一个值的列表")
NO_CHOICE = Text(
    "{value!r} cannot be a choice; use numbers, words, true or false",
    "{value!r} 不能作为候选值；请使用数字、单词、true 或 false",
)
NOT_ABOVE = Text("{name!r} is no parameter above {one!r}{nearest}", "{one!r} 之前没有参数 {name!r}{nearest}")
NO_PARAMETER = Text("{name!r} is no parameter{nearest}", "{name!r} 不是参数{nearest}")
START = Text("start is a list of mappings, like [{{lr: 0.1}}]", "start 应为映射的列表，如 [{{lr: 0.1}}]")
NO_EXPRESSION = Text("{text!r} is no expression: {why}", "{text!r} 不是表达式：{why}")
NOT_EVALUATED = Text(
    "{text!r} has a {what} in it; use names, numbers, words and comparisons",
    "{text!r} 中包含 {what}；只能使用名称、数字、单词和比较",
)
NO_OPERATOR = Text("{text!r}: this operator is not known here", "{text!r}：不支持其中的运算符")
ARGS = Text("args is a mapping", "args 应为映射")

# ── together ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ONE_TARGET_PRUNER = Text(
    "a pruner compares one target; with several, leave it out", "剪枝器只比较一个目标；有多个目标时请去掉 pruner"
)
ONE_TARGET_TUNER = Text(
    "{name} optimizes one target; for several take tpe, gp or nsga2",
    "{name} 只优化一个目标；多个目标请用 tpe、gp 或 nsga2",
)
GRID_STEP = Text("grid needs a choice or a step for {name!r}", "grid 要求 {name!r} 有 choice 或 step")
GRACE = Text(
    "grace is at least twice the heartbeat, or a healthy trial looks stale",
    "grace 至少是 heartbeat 的两倍，否则正常的试验会被判定为失效",
)
NEEDS_RAY = Text(
    "{name} mutates running trials, which needs Ray:  --ray local",
    "{name} 会修改正在运行的试验，需要 Ray：  --ray local",
)
REFUSED = Text("{why}", "Optuna 不接受这些参数：{why}")
CONSTRAINT_NEEDS = Text(
    "{text!r} needs {name!r}, which is neither a parameter nor recorded",
    "{text!r} 需要 {name!r}，它既不是参数也没有被记录",
)
