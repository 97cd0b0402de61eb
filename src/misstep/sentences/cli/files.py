"""What the commands about stored tensors say, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_DIFF = Text(
    "Compare two things in execution order and name the first difference.\n\n"
    "LEFT and RIGHT are runs, steps of runs (run@120), ranks (run#3), checkpoints, dump directories of misstep,"
    " MindSpore or msprobe, or folders of .npy files. Exit code 3 when they differ.",
    "按执行顺序逐一对比两者，指出第一个差异。\n\n"
    "LEFT 与 RIGHT 可以是训练、某个轮次（run@120）、某张逻辑卡（run#3）、Checkpoint、"
    "misstep / MindSpore / msprobe 的 Dump 目录，或 .npy 文件夹。不同时退出码为 3。",
)
ABOUT_EXPORT = Text(
    "Write the stored tensors of a run, dump or checkpoint in another program's format.",
    "把训练、Dump 数据或 Checkpoint 中保存的张量写成其他程序的格式。",
)
ABOUT_DUMP = Text(
    "Save whole tensors of a live run that match PATTERN, at the given steps.",
    "保存正在运行的训练中完整的张量：匹配 PATTERN、在给定的轮次。",
)
ABOUT_CHECK = Text(
    "Check watchpoints on a finished run, another tool's dump, or a folder of arrays.\n\n"
    "The conditions are those of a live run; without any, the recommended set. Exit code 3 on a hit.",
    "对已结束的训练、其他工具的 Dump 数据 或数组文件夹执行监测点检查。\n\n"
    "条件与进行中的训练相同；未给出时使用推荐集合。有命中时退出码为 3。",
)
HELP_DUMP = Text(
    "Save matching whole tensors, for example 'encoder.*:output@100:110'; may be repeated.",
    "保存匹配的完整张量，例如 'encoder.*:output@100:110'；可重复。",
)
HELP_DUMP_CONFIG = Text("A dump configuration in MindSpore's JSON schema.", "MindSpore JSON 格式的 Dump 配置文件。")
HELP_WATCH = Text(
    "A watchpoint, like overflow or 'max > 6e4 on *:output'; may be repeated.",
    "监测点，例如 overflow 或 'max > 6e4 on *:output'；可重复。",
)
HELP_CHECK_STEPS = Text("Steps to look at, like 100:110 or 5,10; all when not given.", "要检查的轮次；不给时为全部。")
HELP_RANK = Text("Which rank; the right side uses the same unless given.", "哪张逻辑卡；右侧默认与左侧相同。")
HELP_ONE_RANK = Text("Which rank; all when not given.", "哪张逻辑卡；不给时为全部。")
HELP_RIGHT_RANK = Text("Which rank of the right side.", "右侧的逻辑卡。")
HELP_WRITE_MAP = Text("Write the pairs found to this map file, to edit.", "把找到的配对写入该映射文件，供编辑。")
HELP_TAG = Text(
    "With --losses: the word before the loss in a log, or its tag in an event file.",
    "与 --losses 合用：日志中 loss 之前的词，或事件文件中的标签。",
)
HELP_RIGHT_TAG = Text("The same for the right side.", "右侧使用的词或标签。")
HELP_MOST_HITS = Text("How many hits to show at most.", "最多显示多少条命中。")
HELP_OVERFLOWS = Text("Also print the table of overflow per operator.", "同时打印各算子的溢出统计表。")
DUMPING = Text("dumping {what}: {tensors} tensors known so far match", "正在保存 {what}：目前有 {tensors} 个张量匹配")
NOTHING_HIT = Text("no hit in {tensors} tensors of {steps} steps", "{steps} 个轮次的 {tensors} 个张量中无命中")
HIT_COUNT = Text(
    "{hits} hits in {tensors} tensors of {steps} steps", "{steps} 个轮次的 {tensors} 个张量中有 {hits} 条命中"
)
NOTHING_WATCHED = Text(
    "no tensor here fits the watchpoint '{watch}'; the nearest names are {near}, with the roles {roles}",
    "监测点 '{watch}' 未匹配到任何张量；最接近的名称是 {near}，角色有 {roles}",
)
NOT_READ = Text(
    "{count} tensors could not be looked at, the first because {first}", "{count} 个张量无法查看，第一个的原因：{first}"
)
MORE = Text("… {count} more; --most {all} shows all", "… 还有 {count} 条；--most {all} 显示全部")
HELP_ALL = Text("Show every row, not only those around the first difference.", "显示所有行，而不仅是第一个差异附近的。")
HELP_MAP = Text(
    "A map file for names that do not match (TOML or JSON).", "名称对不上时使用的映射文件（TOML 或 JSON）。"
)
HELP_STEP = Text(
    "Which step of the left side; the right side uses the same unless given.", "左侧的轮次；未另行指定时右侧相同。"
)
HELP_RIGHT_STEP = Text("Which step of the right side.", "右侧的轮次。")
HELP_LOSSES = Text(
    "Compare the loss curves instead of the tensors, by the 1‰ rule.", "按千分之一规则对比 loss 曲线而非张量。"
)
HELP_FORMAT = Text(
    "npy, npz, safetensors, mindspore, parquet, or weights under the other framework's names: ckpt, pth.",
    "npy、npz、safetensors、mindspore、parquet，或按另一框架命名的权重：ckpt、pth。",
)
HELP_TO = Text("Where to write.", "写到哪里。")
HELP_STEPS = Text(
    "Steps, like 100:110 or 5,10; the next one when not given.", "轮次，例如 100:110 或 5,10；不给时为下一轮次。"
)
NOT_WRITTEN = Text("{count} tensors could not be read and were left out", "{count} 个张量无法读取，已略过")
CONFIGURED_ELSEWHERE = Text(
    "the run was configured to dump elsewhere; to write there:  --to {path}",
    "此次训练的配置指定了其他 Dump 数据位置；要写到那里，请使用  --to {path}",
)
WROTE = Text("wrote {path}", "已写入 {path}")
TENSORS = Text("{count:,} tensors", "{count:,} 个张量")
STEPS = Text("steps {first} to {last}", "轮次 {first} 到 {last}")
FIRST_BAD = Text("first non-finite, in order: {address}, {what}", "按顺序第一个非有限值：{address}，{what}")
ALL_FINITE = Text("every value is finite", "所有值均为有限值")
NOT_ALL_READ = Text(
    "checked the values of {count:,} of {all:,} tensors; to check all:  misstep check {path}",
    "查看了 {all:,} 个张量中 {count:,} 个的值；查看全部：misstep check {path}",
)
MORE_COMMANDS = Text("more:", "更多：")
CHECK_THIS = Text("check watchpoints on it", "用监测点检查")
SHOW_ONE = Text("one tensor and its values", "一个张量及其值")
DIFF_WITH = Text("the first difference from another", "与另一份的第一个差异")
UI_OF = Text("the same in a browser", "在浏览器中查看")
