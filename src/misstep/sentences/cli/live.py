"""Every sentence the live commands say, in English and Chinese side by side."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_UI = Text(
    "Serve the web page for a folder of runs, live and finished, and connect live runs for debugging.\n\n"
    "THINGS are dumps and checkpoints elsewhere: one is shown, two are compared.\n\n"
    "It listens on this machine only and prints a link with a secret token.",
    "为一个目录中的所有训练（进行中和已结束的）提供网页界面，并接入进行中的训练以供调试。\n\n"
    "THINGS 为位于别处的 Dump 数据与 Checkpoint：给出一个则显示，给出两个则并排对比。\n\n"
    "仅监听本机，并打印带有密钥的链接。",
)
ABOUT_DEBUG = Text(
    "Debug a live run at a prompt: pause, step, run to a node, look at tensors, change watchpoints.\n\n"
    "RUN is a name, the beginning of a name, or last. Type help at the prompt.",
    "在提示符下调试进行中的训练：暂停、单步、运行到节点、查看张量、修改监测点。\n\n"
    "RUN 可以是名称、名称的开头或 last。在提示符下输入 help。",
)
ABOUT_PAUSE = Text(
    "Pause a live run at the next node, or all its ranks at the end of the same step.", "暂停进行中的训练。"
)
ABOUT_STEP = Text("Run N more steps (1) and pause.", "再运行 N 个轮次（默认 1）后暂停。")
ABOUT_TO = Text(
    "Run to a node and pause there: decoder.2, decoder.2:input, decoder.2:grad_output; never past one step.",
    "运行到某个节点并暂停：decoder.2、decoder.2:input、decoder.2:grad_output；不会越过当前轮次。",
)
ABOUT_GO = Text("Continue a paused run.", "继续已暂停的训练。")
ABOUT_STOP = Text("End a live run; its own cleanup code still runs.", "结束进行中的训练；其自身的清理代码会执行。")
ABOUT_WATCH = Text(
    "Add a watchpoint to a live run: a condition or an expression, and where.",
    "为进行中的训练添加监测点：条件或表达式，以及位置。",
)
ABOUT_HITS = Text("List what the watchpoints of a run have found.", "列出训练的监测点命中。")

HELP_HOST = Text("Address to listen on (127.0.0.1).", "监听地址（127.0.0.1）。")
HELP_PORT = Text("Port to listen on; 0 for any free one.", "监听端口；0 为任意空闲端口。")
HELP_LINK_PORT = Text("Port for trainees; 0 for any free one.", "训练进程连接的端口；0 为任意空闲端口。")
HELP_EXPOSE = Text("Allow an address that other machines can reach.", "允许其他机器可以访问的地址。")
HELP_NAMES = Text("Another host name to accept; may be repeated.", "额外接受的主机名；可重复。")
HELP_PREFIX = Text("Path below which a proxy serves the page.", "代理提供页面时的路径前缀。")
HELP_IDLE = Text(
    "Exit after this many seconds without a live run or client.", "无进行中的训练或客户端多少秒后自动退出。"
)
HELP_OPEN = Text("Open the page in a browser.", "在浏览器中打开页面。")
HELP_DEMO = Text(
    "Make four small PyTorch runs in missteps-demo/ (one breaks with NaN, one crashes) and open the page on them.",
    "在 missteps-demo/ 中生成四个 PyTorch 小训练（一个出现 NaN，一个崩溃），并打开页面查看。",
)
HELP_QUIET = Text("Print nothing.", "不输出任何内容。")
HELP_RANK = Text("Only this rank; all when left out.", "仅此逻辑卡；省略则为全部。")
HELP_WAIT = Text("Wait until the run pauses again.", "等待训练再次暂停。")
HELP_ON = Text("Which tensors, like 'encoder.*:grad'; may be repeated.", "哪些张量，如 'encoder.*:grad'；可重复。")
HELP_THEN = Text("What to do when it hits.", "命中时的动作。")
HELP_TRY = Text("Only show what it would hit now.", "仅显示现在会命中什么。")
HELP_UNTIL = Text(
    "Run until a condition holds: 'loss > 10', 'step >= 40', 'time > 60'.", "运行直到条件成立，如 'loss > 10'。"
)
HELP_LIMIT = Text("How many to show.", "显示多少条。")
HELP_COMMANDS = Text("Run these commands and exit; may be repeated.", "执行这些命令后退出；可重复。")

OPEN = Text("open {page}  ·  misstep debug last", "请打开 {page}  ·  misstep debug last")
DEMO_RUN = Text("making run {at} of {of}: {run}", "正在生成第 {at}/{of} 个训练：{run}")
DEMO_FAILED = Text(
    "the demonstration could not train {run}: {why}; check the installation:  misstep env",
    "示例训练 {run} 未能完成：{why}；请检查安装：  misstep env",
)
SERVING = Text("misstep: open {page}", "misstep：请打开 {page}")
DRY = Text("would hit {hits} of {tensors} tensors now", "现在会命中 {tensors} 个张量中的 {hits} 个")
NO_HITS = Text("no hits", "没有命中")
ADDED = Text(
    "watchpoint {id}: {condition} on {count} tensors, then {then}",
    "监测点 {id}：{condition}，{count} 个张量，动作 {then}",
)
EVERYWHERE = Text("every", "全部")
STANDS = Text("{phase} at step {step}{place}{reason}", "{phase}，轮次 {step}{place}{reason}")
UNKNOWN = Text("there is no command {word!r}{nearest}; type help", "没有命令 {word!r}{nearest}；请输入 help")
COMPILED = Text(
    "  compiled code keeps its cells, outputs and, with the update in it, gradients to itself;"
    " pynative walks through the next step and shows them",
    "  编译后的代码不显露其中的单元、输出以及（连同更新一起编译时）梯度；pynative 逐节点走完下一轮次并显示它们",
)
GOODBYE = Text(
    "the run is still paused; it continues by itself after a while without a debugger",
    "训练仍处于暂停状态；一段时间没有调试器连接后会自动继续",
)

PROMPT_HELP = Text(
    """  c                      continue                     pause                  pause at the next node
  s [N]                  run N steps                  n                      next node
  to decoder.2           run to a node (:input before, :grad_output and :grad_input its backward)
  until loss>10          run until loss, step or time meets a condition
  pynative [3:5]         MindSpore's graph mode: walk through the next step in PyNative, or run these steps in both
  p enc.0:output[0,:5]   print a tensor or a slice    stats enc.0:output     its statistics
  nan enc.0:output       its next NaN or Inf          hist enc.0:output      a histogram
  diff prev [ADDRESS]    compare with the step before diff A B               two addresses
  watch CONDITION [on PATTERN] [then pause]           try CONDITION …        would it hit now?
  watches                list them                    unwatch N, on N, off N remove, enable, disable
  recheck                ask them again now           hits                   what they found
  where                  where training stands        find op:Softmax hit:   search nodes (file:train.py:13 by line)
  node decoder.2         its line, inputs, outputs, producers, consumers
  ops, modules           what n stops at              recommend              the recommended watchpoints
  stop                   end the training             detach                 let it go on without misstep
  help, q                this; leave""",
    """  c                      继续                         pause                  在下一个节点暂停
  s [N]                  运行 N 个轮次                  n                      下一个节点
  to decoder.2           运行到节点（:input 之前，:grad_output、:grad_input 反向）
  until loss>10          运行直到损失、轮次或时间满足条件
  pynative [3:5]         MindSpore 图模式：在 PyNative 中逐节点走完下一轮次，或让这些轮次在两种模式下都运行
  p enc.0:output[0,:5]   打印张量或切片               stats enc.0:output     统计量
  nan enc.0:output       下一个 NaN 或 Inf            hist enc.0:output      直方图
  diff prev [地址]       与上一轮次比较               diff A B               比较两个地址
  watch 条件 [on 模式] [then pause]                   try 条件 …             现在会命中吗？
  watches                列出监测点                   unwatch N, on N, off N 删除、启用、停用
  recheck                现在重新检查                 hits                   命中列表
  where                  训练停在哪里                 find op:Softmax hit:   搜索节点（file:train.py:13 按行）
  node decoder.2         所在代码行、输入、输出、上游和下游节点
  ops, modules           n 的粒度                     recommend              推荐的监测点
  stop                   结束训练                     detach                 让训练脱离 misstep 继续
  help, q                帮助；退出""",
)
