"""What the commands about replaying a step say, in both languages."""

from __future__ import annotations

from misstep.cli.i18n import Text

ABOUT_REPLAY = Text(
    "Run one step of a finished run again, in a fresh process, with every operator watched.\n\n"
    "RUN@STEP names a step whose capsule was kept: one that went wrong, or one chosen with MISSTEP_CAPSULES. The run's"
    " own command is started again; its state and batch are swapped in at the first step, and it ends after it.",
    "在新进程中重新运行某次训练的某一步，并观察每个算子。\n\n"
    "RUN@STEP 是保存了 capsule 的一步：出错的那一步，或用 MISSTEP_CAPSULES 选定的步。"
    "将再次启动该运行自己的命令，在第一步换入当时的状态与数据，完成该步后结束。",
)
HELP_REPLAY = Text(
    "A capsule: its state and batch are swapped in at the first step, and the command ends after it.",
    "一个 capsule：在第一步换入其中的状态与数据，完成该步后命令结束。",
)
HELP_REPLAY_RANK = Text(
    "Which rank's capsule; the first that has one when not given.", "哪张卡的 capsule；不给时取第一个。"
)
REPLAYED = Text("step {step} was run again: {exact}", "第 {step} 步已重新运行：{exact}")
NOT_REPLAYED = Text(
    "step {step} was not run again: the command never came to the network of the capsule",
    "第 {step} 步未能重新运行：命令没有运行到 capsule 中的网络",
)
