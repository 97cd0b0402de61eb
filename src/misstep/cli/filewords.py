"""What the commands about stored tensors say, in both languages."""

from __future__ import annotations

from misstep.cli.i18n import Text

ABOUT_DIFF = Text(
    "Lay two things side by side, in execution order, and name the first difference.\n\n"
    "LEFT and RIGHT are runs, steps of runs (run@120), ranks (run#3), checkpoints, dump directories of misstep,"
    " MindSpore or msprobe, or folders of .npy files. Exit code 3 when they differ.",
    "按执行顺序逐一对比两者，指出第一个差异。\n\n"
    "LEFT 与 RIGHT 可以是运行、某一步（run@120）、某张卡（run#3）、checkpoint、misstep / MindSpore / msprobe 的 dump 目录，"
    "或 .npy 文件夹。不同时退出码为 3。",
)
ABOUT_EXPORT = Text(
    "Write the stored tensors of a run, dump or checkpoint in another program's format.",
    "把运行、dump 或 checkpoint 中保存的张量写成其他程序的格式。",
)
ABOUT_DUMP = Text(
    "Keep whole tensors of a live run: those that fit PATTERN, at the steps given.",
    "保存正在运行的训练中完整的张量：匹配 PATTERN、在给定的步。",
)
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
WROTE = Text("wrote {path}", "已写入 {path}")
