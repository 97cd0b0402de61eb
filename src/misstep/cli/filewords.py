"""What the commands about stored tensors say, in both languages."""

from __future__ import annotations

from misstep.cli.i18n import Text

ABOUT_DIFF = Text(
    "Lay two things side by side, in execution order, and name the first difference.\n\n"
    "LEFT and RIGHT are runs, steps of runs (run@120), ranks (run#3), checkpoints, dump directories of misstep,"
    " MindSpore or msprobe, or folders of .npy files. Exit code 3 when they differ.",
    "按执行顺序逐一对比两者，指出第一个差异。\n\n"
    "LEFT 与 RIGHT 可以是运行、某一步（run@120）、某张卡（run#3）、checkpoint、"
    "misstep / MindSpore / msprobe 的 dump 目录，或 .npy 文件夹。不同时退出码为 3。",
)
ABOUT_EXPORT = Text(
    "Write the stored tensors of a run, dump or checkpoint in another program's format.",
    "把运行、dump 或 checkpoint 中保存的张量写成其他程序的格式。",
)
ABOUT_DUMP = Text(
    "Keep whole tensors of a live run: those that fit PATTERN, at the steps given.",
    "保存正在运行的训练中完整的张量：匹配 PATTERN、在给定的步。",
)
ABOUT_CHECK = Text(
    "Ask watchpoints of a finished run, a dump of another tool, or a folder of arrays.\n\n"
    "The same conditions as over a live run; the recommended set when none is given. Exit code 3 when something hits.",
    "对已结束的运行、其他工具的 dump 或数组文件夹执行监视点检查。\n\n"
    "条件与实时运行相同；未给出时使用推荐集合。有命中时退出码为 3。",
)
HELP_DUMP = Text(
    "Keep whole tensors that fit, like 'encoder.*:output@100:110'; may be repeated.",
    "保存匹配的完整张量，例如 'encoder.*:output@100:110'；可重复。",
)
HELP_DUMP_CONFIG = Text("A dump configuration in MindSpore's JSON schema.", "MindSpore JSON 格式的 dump 配置文件。")
HELP_WATCH = Text(
    "A watchpoint, like overflow or 'max > 6e4 on *:output'; may be repeated.",
    "监视点，例如 overflow 或 'max > 6e4 on *:output'；可重复。",
)
HELP_CHECK_STEPS = Text("Steps to look at, like 100:110 or 5,10; all when not given.", "要检查的步；不给时为全部。")
HELP_RANK = Text("Which rank; the left side's also holds for the right unless said.", "哪张卡；右侧默认与左侧相同。")
HELP_ONE_RANK = Text("Which rank; all when not given.", "哪张卡；不给时为全部。")
HELP_RIGHT_RANK = Text("Which rank of the right side.", "右侧的卡。")
HELP_WRITE_MAP = Text("Write the pairs found to this map file, to edit.", "把找到的配对写入该映射文件，供编辑。")
HELP_TAG = Text("With --losses: the word before the loss in a log.", "与 --losses 合用：日志中 loss 之前的词。")
HELP_MOST_HITS = Text("Show at most so many hits.", "最多显示多少条命中。")
HELP_OVERFLOWS = Text("Also print the table of overflow per operator.", "同时打印各算子的溢出统计表。")
DUMPING = Text("dumping {what}: {tensors} tensors known so far fit", "正在保存 {what}：目前有 {tensors} 个张量匹配")
NOTHING_HIT = Text("no hit in {tensors} tensors of {steps} steps", "{steps} 步 {tensors} 个张量中无命中")
HIT_COUNT = Text("{hits} hits in {tensors} tensors of {steps} steps", "{steps} 步 {tensors} 个张量中有 {hits} 条命中")
MORE = Text("… {count} more; --most {all} shows all", "… 还有 {count} 条；--most {all} 显示全部")
HELP_ALL = Text("Show every row, not only those around the first difference.", "显示所有行，而不仅是第一个差异附近的。")
HELP_MAP = Text("A map file for names that do not fit (TOML or JSON).", "名称对不上时使用的映射文件（TOML 或 JSON）。")
HELP_STEP = Text("Which step of the left side; also of the right unless said.", "左侧的步；未另行指定时右侧相同。")
HELP_RIGHT_STEP = Text("Which step of the right side.", "右侧的步。")
HELP_LOSSES = Text(
    "Compare the loss curves instead of the tensors, by the 1‰ rule.", "按千分之一规则对比 loss 曲线而非张量。"
)
HELP_FORMAT = Text(
    "npy, npz, safetensors, mindspore, ckpt or parquet.", "npy、npz、safetensors、mindspore、ckpt 或 parquet。"
)
HELP_TO = Text("Where to write.", "写到哪里。")
HELP_STEPS = Text(
    "Steps, like 100:110 or 5,10; the next one when not given.", "步，例如 100:110 或 5,10；不给时为下一步。"
)
NOT_WRITTEN = Text("{count} tensors could not be read and were left out", "{count} 个张量无法读取，已略过")
WROTE = Text("wrote {path}", "已写入 {path}")
TENSORS = Text("{count:,} tensors", "{count:,} 个张量")
STEPS = Text("steps {first} to {last}", "第 {first} 到 {last} 步")
FIRST_BAD = Text("first not finite, in order: {address}, {what}", "按顺序第一个非有限值：{address}，{what}")
ALL_FINITE = Text("every value is finite", "所有值均为有限值")
NOT_ALL_READ = Text(
    "the values of {count:,} tensors were looked at, of {all:,}; all of them:  misstep check {path}",
    "查看了 {all:,} 个张量中 {count:,} 个的值；查看全部：misstep check {path}",
)
MORE_COMMANDS = Text("more:", "更多：")
CHECK_THIS = Text("ask watchpoints of it", "用监视点检查")
SHOW_ONE = Text("one tensor and its values", "一个张量及其值")
DIFF_WITH = Text("the first difference from another", "与另一份的第一个差异")
UI_OF = Text("the same in a browser", "在浏览器中查看")
