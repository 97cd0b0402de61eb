"""What the commands about replaying a step say, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_REPLAY = Text(
    "Replay one step of a finished run in a new process, with every operator watched.\n\n"
    "RUN@STEP names a step whose capsule was kept: one that went wrong, or one chosen with MISSTEP_CAPSULES. The run's"
    " own command is started again; its state and batch are swapped in at the first step, and it ends after it.",
    "在新进程中重放某次训练的某个轮次，并监测每个算子。\n\n"
    "RUN@STEP 是保存了胶囊的轮次：出错的轮次，或用 MISSTEP_CAPSULES 选定的轮次。"
    "将再次启动该训练自己的命令，在第一个轮次换入当时的状态与数据，完成该轮次后结束。",
)
HELP_REPLAY = Text(
    "A capsule: its state and batch are swapped in at the first step, and the command ends after it.",
    "一个胶囊：在第一个轮次换入其中的状态与数据，完成该轮次后命令结束。",
)
HELP_REPLAY_RANK = Text(
    "Which rank's capsule; the first that has one when not given.", "哪张逻辑卡的胶囊；不给时取第一个。"
)
REPLAYED = Text(
    "step {step} was replayed: {exact}; recorded in {run}:  misstep show {run}",
    "轮次 {step} 已重放：{exact}；记录于 {run}：  misstep show {run}",
)
NOT_REPLAYED = Text(
    "step {step} was not replayed: the command never called the capsule's network; what it did is recorded in {run}",
    "轮次 {step} 未能重放：命令没有调用胶囊中的网络；其过程记录于 {run}",
)
NOTHING_RAN = Text(
    "no training was seen: {command}, started in {directory}, ended with code {code} and trained nothing; nothing was"
    " replayed",
    "没有看到训练：在 {directory} 中启动的 {command} 以退出码 {code} 结束，没有进行训练；未重放任何轮次",
)
