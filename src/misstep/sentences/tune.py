"""Why trials end, and why a study cannot begin or go on, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

LOSS_NOT_FINITE = Text("step {step}: the loss is not finite", "轮次 {step}：损失不是有限值")
TARGET_NOT_FINITE = Text("the target is not finite", "目标不是有限值")
DIVERGED = Text(
    "step {step}: the loss is {loss:number}; it began at {begin:number}",
    "轮次 {step}：损失为 {loss:number}，开始时为 {begin:number}",
)
BEHIND = Text("behind other trials at step {step}", "在轮次 {step} 落后于其他试验")
TOO_LONG = Text("longer than {seconds:g} s", "超过 {seconds:g} 秒")
TOO_LARGE = Text("more than {memory:g} MB of memory", "内存超过 {memory:g} MB")
BY_HAND = Text("ended by hand", "手动结束")
WORKER_STOPPED = Text("the worker was stopped", "工作进程已停止")
WORKER_GONE = Text("its worker is gone", "其工作进程已不存在")
INFEASIBLE = Text("a constraint does not hold", "不满足约束")
PROBED = Text("a short run of the range test; no result", "范围测试的短时运行，不计为结果")
SURPLUS = Text("one trial too many; it was never run", "多出的试验，未运行")
EXIT_CODE = Text("exit code {code}", "退出码 {code}")
CANNOT_START = Text("{program} cannot be started: {why}", "无法启动 {program}：{why}")
NEVER_RECORDED = Text("{name} was never recorded", "从未记录 {name}")
AWAY = Text("{storage} is away ({why}); trying again", "{storage} 暂不可用（{why}）；正在重试")
DROPPED = Text(
    "trial {number} was taken for stale and is run again; this result is dropped",
    "试验 {number} 被判定为失效并将重新运行；本次结果不计入",
)
NO_TORCH = Text(
    "the Gaussian process needs PyTorch, which is not installed; TPE proposes instead",
    "高斯过程需要 PyTorch，但未安装；改用 TPE",
)

# ── why a study cannot begin or go on ────────────────────────────────────────────────────────────────────────────────

NONE_COMPLETE = Text(
    "no trial of {study!r} is complete yet; see:  misstep tune status {study}",
    "{study!r} 尚无完成的试验；查看：  misstep tune status {study}",
)
MOSTLY_INFEASIBLE = Text(
    "{count} proposals in a row broke a constraint; widen the ranges or the constraints",
    "连续 {count} 次取值不满足约束；请放宽范围或约束",
)
ALL_FAILED = Text(
    "{count} trials failed and none was complete; the last ended with {why:sentence}. What it printed:  cat {output}",
    "{count} 次试验失败且没有一次完成；最后一次：{why:sentence}。查看其输出：  cat {output}",
)
NOTHING_FITS = Text(
    "nothing that trial {number} printed fits the pattern {pattern!r}. Look:  cat {output}",
    "试验 {number} 的输出中没有内容匹配 {pattern!r}。查看：  cat {output}",
)
TARGET_NEVER_RECORDED = Text(
    "the target {name!r} was never recorded by trial {number}{nearest}. Record it with misstep.report({name}=...),"
    " print it and give a pattern, or look:  misstep show {run}",
    "试验 {number} 从未记录目标 {name!r}{nearest}。可用 misstep.report({name}=...) 记录，"
    "或打印后给出 pattern，或查看：  misstep show {run}",
)
UNREACHABLE = Text(
    "the storage {storage} cannot be reached: {why}. Check it with:  misstep tune status '{storage}'",
    "无法访问存储 {storage}：{why}。检查：  misstep tune status '{storage}'",
)
LOCK_BUSY = Text("the lock of the study was busy for {seconds} s", "study 的锁被占用超过 {seconds} 秒")
NO_STUDIES = Text(
    "no study {name!r}, and there are none in {folder}/; begin one with:  misstep tune study.yaml",
    "没有 study {name!r}，{folder}/ 中也没有任何 study；开始一个：  misstep tune study.yaml",
)
NO_STUDY = Text("no study {name!r} in {folder}/{nearest}", "{folder}/ 中没有 study {name!r}{nearest}")
NO_STUDY_OF_THAT_NAME = Text("no study {name!r}{nearest}", "没有 study {name!r}{nearest}")
NOT_BEGUN = Text(
    "the study of {file} was not begun yet; begin it with:  misstep tune {file}",
    "{file} 的 study 尚未开始；开始：  misstep tune {file}",
)
NOT_IN_STORAGE = Text(
    "no study {name!r} in {storage}; it holds no study yet", "{storage} 中没有 study {name!r}；其中还没有任何 study"
)
WHICH_STUDY = Text(
    "no study {name!r} in {storage}; there is: {names:list}. Name it:  misstep tune status '{storage}#{first}'",
    "{storage} 中没有 study {name!r}；现有：{names:list}。请指明：  misstep tune status '{storage}#{first}'",
)
OTHER_GOAL = Text(
    "the study {name!r} was begun with {begun:list}, the file now says {asked:list}; give the study another name,"
    " or go on with the goal it has",
    "study {name!r} 开始时的目标方向为 {begun:list}，文件现在为 {asked:list}；请为 study 换一个名称，或沿用原来的方向",
)
TOO_FEW = Text(
    "{count} complete trials say nothing about importance; {least} are the least."
    " Run more:  misstep tune {name}.yaml --trials {wanted}",
    "{count} 次完成的试验不足以计算重要性，至少需要 {least} 次。继续运行：  misstep tune {name}.yaml --trials {wanted}",
)
NO_IMPORTANCE = Text("the importance cannot be computed: {why}", "无法计算重要性：{why}")
NO_PROXY_FOR = Text(
    "a proxy stands in front of a database, not of {storage}; name one:  misstep tune serve postgresql://…",
    "代理只能位于数据库之前，而不是 {storage}；请指定数据库：  misstep tune serve postgresql://…",
)
ONE_TARGET_ON_RAY = Text(
    "on Ray a study has one target; run several with:  misstep tune",
    "在 Ray 上 study 只有一个目标；多个目标请用：  misstep tune",
)
LIKE_EMPTY = Text(
    "the command is empty; write it like:  misstep tune --like 'python train.py'",
    "命令为空；请写为：  misstep tune --like 'python train.py'",
)
LIKE_NOTHING = Text(
    "{command} has no argument that looks like a hyper-parameter (it has: {names}). Write the study file by hand:"
    " docs/tuning.md",
    "{command} 的参数中没有像超参的（现有：{names}）。请手写 study 文件：docs/tuning.zh.md",
)
LIKE_SLOW = Text("{command} read no arguments within {seconds} s", "{command} 在 {seconds} 秒内没有读取参数")
LIKE_NEVER = Text(
    "{command} never read arguments with argparse, click or Hydra{why}. Use HyperConfig in the script instead:"
    " docs/tuning.md",
    "{command} 没有用 argparse、click 或 Hydra 读取参数{why}。可在脚本中使用 HyperConfig：docs/tuning.zh.md",
)
