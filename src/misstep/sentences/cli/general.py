"""Every sentence the command line says, in English and Chinese side by side."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── help ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

ABOUT = Text(
    "misstep finds the step where training went wrong: it watches, records and explains any PyTorch or MindSpore"
    " training run, unchanged.",
    "misstep 找出训练从哪个轮次开始出错：无需改动代码，即可监测、记录并解释任何 PyTorch 或 MindSpore 训练。",
)
COMMANDS = Text("Commands", "命令")
OPTIONS = Text("Options", "选项")
USAGE = Text("Usage: ", "用法：")
TRY_HELP = Text("Try '{command} --help'.", "请看 '{command} --help'。")
NO_COMMAND = Text("there is no command {name!r}{nearest}", "没有命令 {name!r}{nearest}")

ABOUT_RUN = Text(
    "Run any command and watch the training in it; its output and exit code stay as they are.\n\n"
    "Options of misstep come before the command; write -- between them when in doubt.",
    "运行任意命令并监测其中的训练；命令的输出和退出码保持不变。\n\nmisstep 的选项写在命令之前；必要时用 -- 隔开。",
)
ABOUT_LS = Text("List the runs, the newest first.", "列出所有训练，最新的在前。")
ABOUT_SHOW = Text(
    "Show what happened in a run: the first bad value, the findings, the loss.\n\n"
    "RUN is a path, a name, the beginning of a name, or last. With an ADDRESS"
    " (encoder.*:grad@100:200) it shows the history of the matching tensors.",
    "查看一次训练：第一个异常值出现在哪里、监测点发现了什么、损失如何变化。\n\n"
    "RUN 可以是路径、名称、名称的开头或 last。给出 ADDRESS（encoder.*:grad@100:200）时显示匹配张量的历史。",
)
ABOUT_ENV = Text(
    "Show versions and settings, and whether each framework works here.",
    "显示版本和生效的设置，以及各框架在此环境中能否使用。",
)

HELP_LANG = Text("Language of the messages.", "消息语言。")
HELP_JSON = Text("Print JSON, exact numbers included.", "以 JSON 输出，数值不作舍入。")
HELP_DIR = Text("Where runs are kept (missteps).", "存放训练记录的目录（missteps）。")
HELP_HELP = Text("Show this help.", "显示本帮助。")
HELP_VERSION = Text("Show the version.", "显示版本。")
HELP_LEVEL = Text(
    "How closely to watch: guard, module (default) or op.", "监测的细致程度：guard、module（默认）或 op。"
)
HELP_STEPS = Text("Steps to watch, like 100:200 or 5,10,15.", "要监测的轮次，如 100:200 或 5,10,15。")
HELP_WATCH = Text(
    "Add a watchpoint, like overflow or 'abs_mean > 1e3'; may be repeated.",
    "添加监测点，如 overflow 或 'abs_mean > 1e3'；可重复。",
)
HELP_THEN = Text("What a --watch does when it hits.", "--watch 命中时的动作。")
HELP_BUDGET = Text(
    "Largest share of training time misstep may take, like 3%.", "misstep 最多可占用的训练时间比例，如 3%。"
)
HELP_NAME = Text("Name of the run.", "训练的名称。")
HELP_ON_NAN = Text("What to do at the first NaN or Inf.", "出现第一个 NaN 或 Inf 时的动作。")
HELP_PAUSE_AT_START = Text("Wait for a debugger before the first step.", "在第一个轮次之前等待调试器。")
HELP_NO_UI = Text("Do not start the web interface.", "不启动网页界面。")
HELP_QUIET = Text("No status line and no report.", "不显示状态行和报告。")
HELP_CHECK = Text(
    "Exit with 3 when the run has a verdict, an error or a finding.", "若训练有结论、错误或发现，则以 3 退出。"
)
HELP_MOST = Text("How many hits, tensors or steps to show at most.", "最多显示多少条命中、张量或轮次。")

# ── misstep run ──────────────────────────────────────────────────────────────────────────────────────────────────────

NOT_FOUND = Text("{command}: command not found{hint}", "{command}：找不到命令{hint}")
HINT_PYTHON = Text(
    "; to run a Python script:  misstep run python {command}", "；运行 Python 脚本请用：misstep run python {command}"
)
NOT_EXECUTABLE = Text("{command}: cannot be executed: {why}{hint}", "{command}：无法执行：{why}{hint}")
NO_COMMAND_GIVEN = Text(
    "which command? Like:  misstep run python train.py", "要运行什么命令？例如：misstep run python train.py"
)
BAD_STEPS = Text(
    "--steps {steps!r}: write 100:200, 100:, :50 or 5,10,15", "--steps {steps!r}：应写作 100:200、100:、:50 或 5,10,15"
)
NOTHING_RECORDED = Text(
    "cannot record in {folder}: {why}; choose another directory with --dir.",
    "无法在 {folder} 中记录：{why}；请用 --dir 另选目录。",
)
NO_STEPS = Text(
    "no training step was seen: misstep found no update of weights, so NaN and Inf were not checked.",
    "没有看到训练轮次：没有看到权重更新，因此没有检查 NaN 与 Inf。",
)
NO_TRAINING = Text(
    "no training was seen: no Python process of this command ran a training step that misstep can follow. A step that"
    " torch.compile compiles as a whole is not seen; compile the network alone.",
    "没有看到训练：此命令的 Python 进程都没有执行 misstep 能够跟踪的训练轮次。"
    "整个轮次由 torch.compile 编译时无法看到；请只编译网络。",
)
FLAG_HIDES_US = Text(
    "python {flag} ignores the environment, and misstep with it: run it without {flag}, or use misstep.attach(model).",
    "python {flag} 会忽略环境变量，misstep 因此无法附着：请去掉 {flag}，或使用 misstep.attach(model)。",
)
KILLED = Text("the command was killed by {signal}.", "命令被 {signal} 终止。")
ALL_FINE = Text(
    "no NaN or Inf was seen in {steps}. Checked: {what}; evaluation and code between steps are not checked.",
    "在 {steps}中没有发现 NaN 或 Inf。检查范围：{what}；评估以及轮次之间的代码不在检查之列。",
)
CHECKED: dict[str, Text] = {
    "guard": Text("losses, gradients and weights", "损失、梯度与权重"),
    "module": Text(
        "losses, gradients, weights, and what goes into and out of modules", "损失、梯度、权重，以及各模块的输入与输出"
    ),
    "op": Text("every operator of the steps", "各轮次的全部算子"),
}
BAD_LOSSES = Text(
    "the loss was NaN or Inf in {steps}, first at step {first}. Find the operator:  misstep run --level op <command>",
    "损失在 {steps}中为 NaN 或 Inf，首次出现在轮次 {first}。定位算子：misstep run --level op <命令>",
)
SKIPPED_UPDATES = Text(
    "{count} updates were skipped because gradients overflowed; {steps} were updated.",
    "有 {count} 次更新因梯度溢出被跳过；完成更新的有 {steps}。",
)
HITS_SEEN = Text(
    "watchpoints were hit: {hits}. To see them:  misstep show last", "监测点被命中：{hits}。查看：misstep show last"
)
NOT_WATCHED = Text(
    "{steps} of {all} were not watched (level off), so NaN or Inf may have gone unnoticed. To watch them:"
    "  misstep run --level guard <command>",
    "共 {all}，其中 {steps}未被监测（级别 off），NaN 或 Inf 可能未被发现。监测它们：misstep run --level guard <命令>",
)
LOST_SIGHT = Text(
    "{count} records could not be kept, so NaN or Inf may have gone unnoticed. Free some disk space and run again.",
    "有 {count} 条记录未能保存，NaN 或 Inf 可能未被发现。请释放磁盘空间后重新运行。",
)
BROKEN_OFF = Text(
    "the record breaks off after {steps}: no last word was written, so what came later was not seen.",
    "记录在 {steps}之后中断：没有写入结束信息，其后的情况未被看到。",
)
DIRECTORY_REMOVED = Text(
    "the directory of the run, {directory}, was removed while the command ran; what was recorded is gone.",
    "运行目录 {directory} 在命令执行期间被删除；已记录的内容不复存在。",
)
AFTERWARDS = Text(
    "the command ended with {code}; misstep then failed to sum up the run: {why}",
    "命令已结束，退出码 {code}；随后 misstep 未能汇总此次运行：{why}",
)
WATCHED = Text("{steps}, {hits}; recorded in {directory}", "{steps}，{hits}；记录于 {directory}")
TROUBLES = Text("{count} errors inside misstep; the first: {text}", "misstep 内部错误 {count} 次；第一次：{text}")
NEXT = Text("next:  {command}", "下一步：{command}")

STATUS_WAITING = Text("misstep: waiting for training to begin", "misstep：等待训练开始")
STATUS_STEP = Text("step {step}", "轮次 {step}")
STATUS_LOSS = Text("loss {loss}", "损失 {loss}")
STATUS_RATE = Text("{rate} it/s", "{rate} 轮次/秒")
STATUS_OVERHEAD = Text("overhead {percent}", "开销 {percent}")
STATUS_PAUSED = Text("paused", "已暂停")
RANKS = Text("{count} ranks", "{count} 张逻辑卡")

# ── counts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

ONE_STEP = Text("1 step", "1 个轮次")
STEPS = Text("{count} steps", "{count} 个轮次")
NO_HITS = Text("no hits", "无命中")
ERRORS = Text("{count} errors", "{count} 个错误")
ONE_ERROR = Text("1 error", "1 个错误")
WARNINGS = Text("{count} warnings", "{count} 个警告")
ONE_WARNING = Text("1 warning", "1 个警告")
NOTES = Text("{count} notes", "{count} 条提示")
ONE_NOTE = Text("1 note", "1 条提示")

# ── the verdict, in words ────────────────────────────────────────────────────────────────────────────────────────────

VERDICT = Text("step {step}{rank}, {phase}, {place}", "轮次 {step}{rank}，{phase}，{place}")
ON_RANK = Text(", rank {rank}", "，逻辑卡 {rank}")
VERDICT_OUTPUT = Text(": {what} has {description}", "：{what} 的 {description}")
INPUTS_FINITE = Text(", inputs were finite", "，输入均为有限值")
INPUT_BAD = Text(", its input {address} was bad already", "，其输入 {address} 已经异常")
PHASE_INPUT = Text("input", "输入")
PHASE_FORWARD = Text("forward", "前向")
PHASE_LOSS = Text("loss", "损失")
PHASE_BACKWARD = Text("backward", "反向")
PHASE_OPTIMIZER = Text("optimizer", "优化器")
PRECISION_OPERATOR = Text("known to the operator", "精确到算子")
PRECISION_MODULE = Text(
    "known to the module; for the operator and its line:  misstep run --level op …",
    "精确到模块；要定位到算子和代码行：misstep run --level op …",
)
PRECISION_STEP = Text(
    "known to the step; for the operator and its line:  misstep run --level op …",
    "精确到轮次；要定位到算子和代码行：misstep run --level op …",
)

# ── misstep ls, misstep show ─────────────────────────────────────────────────────────────────────────────────────────

NO_RUNS = Text(
    "no runs in {folder}; record one with:  misstep run python train.py",
    "{folder} 中没有训练记录；先记录一次：misstep run python train.py",
)
COLUMN_RUN = Text("run", "训练")
COLUMN_STATE = Text("state", "状态")
COLUMN_STEPS = Text("steps", "轮次数")
COLUMN_LOSS = Text("loss", "损失")
COLUMN_RANKS = Text("ranks", "逻辑卡")
COLUMN_STARTED = Text("started", "开始")
COLUMN_VERDICT = Text("first bad value", "第一个异常值")
COLUMN_STEP = Text("step", "轮次")
COLUMN_TENSOR = Text("tensor", "张量")
COLUMN_WHY = Text("why", "原因")
COLUMN_BIRTH = Text("birth", "来源")
COLUMN_MEAN = Text("mean", "均值")
COLUMN_STD = Text("std", "标准差")
COLUMN_MIN = Text("min", "最小")
COLUMN_MAX = Text("max", "最大")
COLUMN_BAD = Text("NaN/Inf", "NaN/Inf")
COLUMN_CONDITION = Text("condition", "条件")
COLUMN_SHAPE = Text("shape", "形状")

STATE_STARTING = Text("starting", "启动中")
STATE_RUNNING = Text("running", "运行中")
STATE_PAUSED = Text("paused", "已暂停")
STATE_FINISHED = Text("finished", "已完成")
STATE_FAILED = Text("failed", "失败")
STATE_STOPPED = Text("stopped", "已停止")
STATE_LOST = Text("lost", "已失联")

BIRTH_ORIGIN = Text("origin", "源头")
BIRTH_PROPAGATED = Text("propagated", "传播")
BIRTH_UNKNOWN = Text("", "")

TITLE_COMMAND = Text("command", "命令")
TITLE_VERDICT = Text("first bad value", "第一个异常值")
TITLE_INPUTS = Text("inputs", "输入")
TITLE_OUTPUTS = Text("outputs", "输出")
TITLE_HITS = Text("hits", "命中")
TITLE_FINDINGS = Text("findings", "发现")
TITLE_LOSS = Text("loss", "损失")
TITLE_SCALE = Text("loss scale", "损失缩放")
SCALE_WENT = Text(
    "{first} at step {begin} → {last} at step {end}; {skipped} of {all} updates skipped for an overflow",
    "轮次 {begin} {first} → 轮次 {end} {last}；{all} 次更新中因溢出跳过 {skipped} 次",
)
SKIPPED_AT = Text("before step {step}: {place}", "轮次 {step} 之前：{place}")
TITLE_CURVES = Text("recorded numbers", "记录的数值")
TITLE_LINES = Text("operators and their lines", "算子及其代码行")
GRAPH_HOLDS = Text(
    "{operators} operators ({phases}), {weights} parameters", "{operators} 个算子（{phases}），{weights} 个参数"
)
TITLE_DAMAGE = Text("damage", "损坏")
TITLE_WARNINGS = Text("warnings", "警告")
MORE = Text("… and {count} more (--most {all})", "… 另有 {count} 条（--most {all}）")
LOSS_WENT = Text("{first} at step {begin} → {last} at step {end}", "轮次 {begin} {first} → 轮次 {end} {last}")
LOWEST = Text(", lowest {loss} at step {step}", "，最低 {loss}（轮次 {step}）")
NO_TENSOR = Text("nothing in {run} matches {address!r}{nearest}", "{run} 中没有与 {address!r} 匹配的张量{nearest}")
LOST_RUN = Text("its process disappeared without an error message", "进程消失，没有错误信息")
LOST_LEFT = Text("what it left behind:", "查看它留下的记录：")
LOST_WITHOUT_RECORD = Text("it kept no flight record", "没有飞行记录")
ENDED_WITH = Text("it ended with {error}; {place}", "以 {error} 结束；{place}")
HOW_IT_ENDED = Text("how it ended:", "如何结束：")
LOST_RUNS = Text("how a lost run ended:  misstep open {name}", "查看失联的训练如何结束：misstep open {name}")
VALUES_OF = Text("values at step {step}", "轮次 {step}的值")
VALUES = Text("values", "值")
NONFINITE_AT = Text("{count:,} of {all:,} are not finite: {places}", "{all:,} 个中有 {count:,} 个非有限值：{places}")
ALL_FINITE = Text("all {all:,} are finite", "全部 {all:,} 个均为有限值")
NO_ROWS = Text(
    "{address} exists, but no statistics were kept for these steps", "{address} 存在，但这些轮次没有保留统计数据"
)

# ── misstep env ──────────────────────────────────────────────────────────────────────────────────────────────────────

WORKS = Text("works", "可用")
NOT_INSTALLED = Text("not installed", "未安装")
DOES_NOT_WORK = Text("does not work: {why}", "不可用：{why}")
NUMPY_TOO_NEW = Text(
    "MindSpore 2.10 cannot work with numpy {version}:  pip install 'numpy<2'",
    "MindSpore 2.10 不能与 numpy {version} 一起使用：pip install 'numpy<2'",
)
SETTINGS_IN_FORCE = Text("settings that differ from the default", "与默认值不同的设置")
ALL_DEFAULT = Text("all at their default", "均为默认值")
NUMPY_TWIN = Text("numpy; the native kernels are not built:  pip install .", "numpy；原生内核未构建：pip install .")
