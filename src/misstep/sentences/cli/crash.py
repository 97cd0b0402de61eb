"""What `misstep open` and `misstep record` say, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_OPEN = Text(
    "Open a flight record: what ended the run, where, and the usual causes.\n\n"
    "BUNDLE is a .zip that misstep left behind (missteps/RUN/records/crash.zip), on any machine. A run opens the newest"
    " of its records; a run without one, or a dump of another tool, is shown as `misstep show` does.",
    "打开飞行记录，说明训练因何、在何处结束，以及通常的原因。\n\n"
    "BUNDLE 是 misstep 留下的 .zip（missteps/RUN/records/crash.zip），可在任何机器上打开。给出训练时打开其最新记录；"
    "没有飞行记录的训练或其他工具的 dump 则像 `misstep show` 那样显示。",
)
ABOUT_RECORD = Text(
    "Make a flight record now: of a live run without disturbing it, of a dead one from its files.",
    "立即生成一次训练的飞行记录：正在运行的不受打扰，已结束的由其遗留文件生成。",
)
HELP_FULL = Text("Show every frame, every log line and all threads.", "显示全部栈帧、日志行和线程。")
HELP_MOST = Text("How many entries of each list to show.", "每个列表显示多少条。")
HELP_UI = Text("Show it as a page in the browser, until Ctrl-C.", "在浏览器中以页面显示，直到按 Ctrl-C。")
SERVING = Text("the crash page is at {page}\nCtrl-C ends it", "崩溃页面在 {page}\n按 Ctrl-C 结束")
REACHED = Text(
    "position {first} to {last} of {total} in execution order: {nodes}",
    "执行顺序第 {first} 到 {last} 位，共 {total} 位：{nodes}",
)
HELP_TO = Text("Write it to this file.", "写到此文件。")

WHAT_EXCEPTION = Text("{name}: {text}", "{name}：{text}")
WHAT_EXIT = Text("the program ended itself with exit code {code}{text}", "程序以退出码 {code} 自行结束{text}")
WHAT_SIGNAL = Text("the process was ended by {name} ({meaning})", "进程被 {name} 终止（{meaning}）")
WHAT_HANG = Text("no step ended for {seconds} s", "已有 {seconds} 秒没有完成任何轮次")
WHAT_ASKED = Text("recorded on request; training goes on", "应要求记录；训练仍在继续")
WHAT_END = Text("training ended normally", "训练正常结束")
WHAT_LOST = Text("the process disappeared without an error message", "进程消失，没有错误信息")

SIGNALS: dict[str, Text] = {
    "SIGKILL": Text("killed; it had no chance to write anything", "被强制杀死，来不及写任何内容"),
    "SIGTERM": Text("asked to end", "被要求结束"),
    "SIGSEGV": Text("segmentation fault in native code", "本地代码段错误"),
    "SIGABRT": Text("native code aborted", "本地代码主动中止"),
    "SIGBUS": Text("bus error: shared memory or a cut file", "总线错误：共享内存或被截断的文件"),
    "SIGFPE": Text("arithmetic error in native code", "本地代码算术错误"),
    "SIGILL": Text("illegal instruction for this processor", "处理器不认识的指令"),
    "SIGINT": Text("interrupted from the keyboard", "键盘中断"),
}
SIGNAL_OTHER = Text("a signal", "信号")
MEMORY_KILLER = Text("the kernel's out-of-memory killer", "内核 OOM killer")

WHERE = Text("in step {step}{rank}{phase}{node}{source}", "轮次 {step}{rank}{phase}{node}{source}")
PHASES: dict[str, Text] = {
    "between": Text(", between forward, backward and update", "，在前向、反向与更新之间"),
    "forward": Text(", forward", "，前向"),
    "backward": Text(", backward", "，反向"),
    "optimizer": Text(", optimizer update", "，优化器更新"),
}
BEFORE = Text("{step} was the last step that ended{loss}{memory}", "最后完成的是轮次 {step}{loss}{memory}")
NO_STEP = Text("no step had ended yet{memory}", "尚未完成任何轮次{memory}")
BEFORE_LOSS = Text(", loss {loss}", "，loss {loss}")
BEFORE_MEMORY = Text(", memory {memory}", "，内存 {memory}")
OF_LIMIT = Text(" of {limit}", "，上限 {limit}")

TITLE_CAUSES = Text("Likely causes", "可能的原因")
TITLE_STACK = Text("Stack", "调用栈")
TITLE_MACHINE = Text("machine code, the innermost first", "机器码栈（最内层在前）")
TITLE_RANKS = Text("Ranks", "各卡")
TITLE_EVENTS = Text("Last events", "最后的事件")
TITLE_TRAIL = Text("Last modules, the latest first", "最后进入的模块（最近的在前）")
TITLE_MEMORY = Text("Memory", "内存")
TITLE_HOLDERS = Text("Held by", "占用者")
TITLE_LOG = Text("Last lines of its output", "最后的输出")
TITLE_STEPS = Text("Last steps", "最后几个轮次")
TITLE_BATCH = Text("Batch", "批数据")
TITLE_VALUES = Text("Values kept", "保存的值")
LEFT_OUT = Text(
    "{count} more ({size}) did not fit: {names}; the run itself has them",
    "另有 {count} 个（{size}）未装入：{names}；它们在原训练记录中",
)
COLUMN_RANK = Text("rank", "卡")
COLUMN_STEP = Text("last step", "最后轮次")
COLUMN_WHAT = Text("ended by", "如何结束")
COLUMN_PLACE = Text("was in", "位置")
COLUMN_WAITS = Text("waits in", "等待于")
COLUMN_DONE = Text("collectives", "集合通信次数")
FIRST = Text("stopped first", "最先停下")
NOT_THERE = Text("did not join", "未参加")
MEMORY_CURVE = Text("{low} … {high} over steps {first} to {last}", "轮次 {first} 到 {last}：{low} … {high}")
COUNT_OF = Text("{count} tensors", "{count} 个张量")
MADE = Text("flight record: {path}", "飞行记录：{path}")
NOT_MADE = Text(
    "cannot make a flight record of {run} in its place ({why}); copy the run and open the copy",
    "无法在 {run} 所在处生成飞行记录（{why}）；请复制该训练目录后再打开",
)
NO_ANSWER = Text(
    "no live process of {run} answered; the record was made from its files",
    "{run} 没有存活的进程应答；记录来自其遗留文件",
)
