"""Sentences of runs recorded before sentences had ids, in Chinese.

Such a run holds English only. Every sentence had a fixed shape, so a table of shapes is enough. Nothing is added here:
a new sentence is a `Text` in the catalogue.

>>> in_chinese("3 NaN of 2,048; the rest -2.831 … 3.009")
'2,048 个元素中有 3 个 NaN；其余 -2.831 … 3.009'
"""

from __future__ import annotations

import re

_PHASES = {"input": "输入", "forward": "前向", "loss": "损失", "backward": "反向", "optimizer": "更新"}
_ENDINGS = {"finished": "完成", "failed": "失败", "stopped": "被停止", "detached": "已分离"}
_MOMENTS = {"paused": "已暂停", "running": "继续运行", "pausing": "正在暂停", "stepping": "单步中"}
_LATER = {"were equal before": "此前相同", "always did: sharded, or not broadcast": "一直如此：被切分，或没有广播"}

_PHASE = rf"(?P<phase>{'|'.join(_PHASES)})"

_STORY_SHAPES: tuple[tuple[str, str], ...] = (
    # journal lines
    (rf"first bad value: step (?P<step>\d+), {_PHASE}, (?P<node>.+)", "第一个坏值：轮次 {step}，{phase}，{node}"),
    (
        rf"step (?P<step>\d+), {_PHASE}, (?P<node>.+?): (?P<role>[a-z_.\d]+) has (?P<sentence>.+)",
        "轮次 {step}，{phase}，{node}：{role} 的 {sentence}",
    ),
    (rf"step (?P<step>\d+), {_PHASE}, (?P<node>[^:]+)", "轮次 {step}，{phase}，{node}"),
    (r"inputs were finite", "输入都是有限值"),
    (r"input (?P<address>\S+) was bad already", "输入 {address} 已经有坏值"),
    (rf"(?P<ending>{'|'.join(_ENDINGS)})", "{ending}"),
    (rf"(?P<ending>{'|'.join(_ENDINGS)}), exit code (?P<code>-?\d+)", "{ending}，退出码 {code}"),
    (r"(?P<condition>\w+) (?P<address>\S+:\S+@\S+): (?P<sentence>.+)", "{condition} {address}：{sentence}"),
    (r"the step was run again \((?P<sentence>.+?)\): (?P<then>step .+)", "这一步重新运行过（{sentence}）：{then}"),
    (r"step (?P<step>\d+) was run again from its capsule: (?P<sentence>.+)", "轮次 {step} 从胶囊重新运行：{sentence}"),
    (r"the step was run again: (?P<sentence>.+)", "这一步重新运行过：{sentence}"),
    (r"the step was not run again: (?P<sentence>.+)", "这一步没有重新运行：{sentence}"),
    (r"no backward of this step was seen", "没有看到这一步的反向"),
    (
        r"no eager backward of this step was seen; compiled code is not run again",
        "没有看到这一步的动态图反向；编译的代码不会重新运行",
    ),
    (
        r"not exact: the update was run again from what it left, not from the weights before it",
        "不完全一致：更新是从它留下的值重新运行的，而不是从更新前的权重",
    ),
    (
        r"not exact: run from the same weights and not compiled, the update wrote something else to (?P<name>.+)",
        "不完全一致：从同样的权重、不经编译运行，更新写到 {name} 的值不同",
    ),
    (
        r"the update is compiled together with the network, and cannot be run again by itself",
        "更新与网络一起编译，不能单独重新运行",
    ),
    (
        r"compiled code cannot be stopped to be given other weights",
        "编译的代码不能中途停下来换入别的权重",
    ),
    (
        r"the compiled step has moved its weights, and it moves (?P<size>\d+) MB of weights, of which no more than"
        r" (?P<most>\d+) are kept",
        "编译的一步已改动权重：共 {size} MB，至多保留 {most} MB",
    ),
    (
        r"the compiled step has moved its weights, and to keep (?P<size>\d+) MB of weights before every one would take"
        r" (?P<share>\S+) of its time",
        "编译的一步已改动权重：每步之前保留 {size} MB 权重要占用时的 {share}",
    ),
    (r"to look into (?:it|the step):  (?P<command>MISSTEP_PYNATIVE=.+)", "查看它：{command}"),
    (
        r"no network was differentiated in this step, which is what a capsule begins with",
        "这一步没有对任何网络求导，胶囊无从开始",
    ),
    (r"no single sample of the batch is to blame", "这一批中没有哪个样本单独引起它"),
    (r"every part of the batch is healthy", "这一批的每一部分都正常"),
    (r"no capsule of step (?P<step>\d+): (?P<sentence>.+)", "轮次 {step} 没有胶囊：{sentence}"),
    (rf"(?P<moment>{'|'.join(_MOMENTS)}) at step (?P<step>\d+)", "{moment}，轮次 {step}"),
    (
        rf"(?P<moment>{'|'.join(_MOMENTS)}) at step (?P<step>\d+): (?P<address>\S+:\S+@\S+): (?P<sentence>.+)",
        "{moment}，轮次 {step}：{address}：{sentence}",
    ),
    (r"the update of step (?P<step>\d+) was skipped", "轮次 {step} 的更新被跳过"),
    (r"loss scale (?P<scale>\S+)", "损失缩放 {scale}"),
    (r"it overflowed first at (?P<node>.+)", "最先在 {node} 溢出"),
    (r"(?P<count>[\d,]+) tensors could not be kept at step (?P<step>\d+)", "轮次 {step} 有 {count} 个张量没能保留"),
    (
        r"looking closely at every step: (?P<level>\w+) level costs (?P<cost>\S+) of a step,"
        r" the budget is (?P<budget>\S+)",
        "每一步都仔细看：{level} 级别占一步的 {cost}，预算是 {budget}",
    ),
    (
        r"looking closely at one step in (?P<interval>\d+): (?P<level>\w+) level costs (?P<cost>\S+) of a step,"
        r" the budget is (?P<budget>\S+)",
        "每 {interval} 步仔细看一步：{level} 级别占一步的 {cost}，预算是 {budget}",
    ),
    (r"misstep itself failed (?P<count>\d+) times (?P<where>.+)", "misstep 自身出错 {count} 次（{where}）"),
    (
        r"no room for the previous value of (?P<count>\d+) tensors within memory_mb=(?P<limit>\S+); their change is not"
        r" watched",
        "memory_mb={limit} 放不下 {count} 个张量上一步的值；不监测它们的变化",
    ),
    (
        r"a dump on a hit will lack (?P<count>\d+) tensors: no room to hold them until the step ends within"
        r" (?P<limit>\S+) MB \(a fourth of memory_mb\)",
        "命中时的转储会缺 {count} 个张量：{limit} MB（memory_mb 的四分之一）不够把它们留到这一步结束",
    ),
    (r"dump configuration: (?P<sentence>.+)", "转储配置：{sentence}"),
    (r"no flight record: (?P<why>.+)", "没有飞行记录：{why}"),
    (
        r"MindSpore had compiled something before misstep could ask for its graphs; there are none",
        "misstep 还没来得及要求保存计算图，MindSpore 就已编译过；没有图可看",
    ),
    (
        r"data of graph (?P<number>\S+) without its \.ir; it is not shown",
        "图 {number} 有数据但没有 .ir 文件；不显示",
    ),
    (r"step (?P<step>\d+) was run in PyNative too: (?P<sentence>.+)", "轮次 {step} 也在 PyNative 中运行：{sentence}"),
    (r"step (?P<step>\d+) could not be run in PyNative: (?P<why>.+)", "轮次 {step} 无法在 PyNative 中运行：{why}"),
    (r"these steps will be run in PyNative too: (?P<steps>.+)", "这些轮次也会在 PyNative 中运行：{steps}"),
    (r"the loss agrees with graph mode(?P<both>.*)", "损失与图模式一致{both}"),
    (r"loss and gradients agree with graph mode(?P<both>.*)", "损失和梯度与图模式一致{both}"),
    (r"the modes differ: (?P<sentence>.+)", "两种模式不同：{sentence}"),
    # ranks
    (
        r"rank (?P<rank>\d+) updates with other gradients than rank (?P<other>\d+) though their weights were equal:"
        r" gradients are not averaged \(is the model wrapped in DistributedDataParallel\?\)",
        "逻辑卡 {rank} 与逻辑卡 {other} 权重相同，却用不同的梯度更新：梯度没有求平均"
        "（模型包在 DistributedDataParallel 里了吗？）",
    ),
    (
        r"(?P<some>\d+) of (?P<all>\d+) weights of rank (?P<rank>\d+) differ from rank (?P<other>\d+)",
        "逻辑卡 {rank} 的 {all} 个权重中有 {some} 个与逻辑卡 {other} 不同",
    ),
    (rf"they (?P<later>{'|'.join(_LATER)})", "{later}"),
    (
        r"rank (?P<rank>\d+) is fed the same batch as rank (?P<other>\d+): a DistributedSampler or a shard is missing",
        "逻辑卡 {rank} 与逻辑卡 {other} 拿到同一批数据：缺少 DistributedSampler 或数据切分",
    ),
    (
        r"the loss of rank (?P<rank>\d+) is (?P<loss>\S+), others have (?P<middle>[^\s,]+)",
        "逻辑卡 {rank} 的损失为 {loss}，其他卡为 {middle}",
    ),
    (
        r"the loss of rank (?P<rank>\d+) is (?P<loss>\S+), others have (?P<middle>[^\s,]+),"
        r" (?P<steps>\d+) steps in a row",
        "逻辑卡 {rank} 的损失为 {loss}，其他卡为 {middle}，已连续 {steps} 步",
    ),
    # findings
    (
        r"(?P<count>[\d,]+) weights did not change although their gradients are not zero",
        "{count} 个权重没有变化，尽管梯度不为零",
    ),
    (r"(?P<names>.+): the same to the last bit over the last updates", "{names}：最近几次更新后逐位相同"),
    (
        r"optimizer (?P<optimizer>.+), learning rate (?P<rate>\S+)",
        "优化器 {optimizer}，学习率 {rate}",
    ),
    (r"the learning rate is 0", "学习率为 0"),
    (
        r"the gradients vanish on their way back: the largest, (?P<largest>\S+), is too small to move a weight",
        "梯度在回传途中消失：最大的 {largest} 也太小，改变不了权重",
    ),
    (
        r"on the CPU, MindSpore's in-place tensor operators change nothing, so mint\.optim\.SGD and Adam never update;"
        r" use nn\.SGD, nn\.Adam or mindspore\.experimental\.optim",
        "在 CPU 上，MindSpore 的原地张量算子什么也不改，所以 mint.optim 的 SGD 和 Adam 从不更新；"
        "请用 nn.SGD、nn.Adam 或 mindspore.experimental.optim",
    ),
    (
        r"the optimizer may hold other tensors than the model: it was made before the model was moved or replaced",
        "优化器手里的张量可能不是模型的：它是在模型被搬移或替换之前建立的",
    ),
    (
        r"(?P<node>\S+) \((?P<type>\w+)\) hides NaN: (?P<count>[\d,]+) went in at step (?P<step>\d+), none came out",
        "{node}（{type}）掩盖了 NaN：轮次 {step} 进去 {count} 个，一个也没有出来",
    ),
    (r"(?P<address>\S+:input@\d+) has (?P<sentence>.+)", "{address} 的 {sentence}"),
    (
        r"the loss stays finite and the network trains on wrong values; look at what feeds this layer",
        "损失保持有限，网络却在错误的值上训练；请看是什么送进了这一层",
    ),
    (r"loss scale (?P<scale>\S+) at step (?P<step>\d+)", "轮次 {step} 的损失缩放为 {scale}"),
    (
        r"gradients overflow in half precision more often than a loss scale can mend: look at the operator named in the"
        r" skipped steps, lower the learning rate, or train in bfloat16",
        "半精度下梯度溢出太频繁，损失缩放无法弥补：请看被跳过的轮次所指的算子，降低学习率，或用 bfloat16 训练",
    ),
    (
        r"(?P<operator>\S+) has no kernel on this device(?: at (?P<source>.+))?",
        "{operator} 在此设备上没有内核 {source}",
    ),
    (r"MindSpore could not compile the network(?: at (?P<source>.+))?", "MindSpore 无法编译网络 {source}"),
    (r"node (?P<node>\S+)", "节点 {node}"),
    (r"replace it, or run on a device that has it", "请替换它，或在有它的设备上运行"),
    (
        r"what a graph may hold is less than Python; the same code runs eagerly with"
        r" mindspore\.set_context\(mode=mindspore\.PYNATIVE_MODE\)",
        "图模式能容纳的比 Python 少；同样的代码可以用 mindspore.set_context(mode=mindspore.PYNATIVE_MODE) 动态运行",
    ),
    (
        r"graph mode and PyNative give different results: (?P<sentence>.+)",
        "图模式与 PyNative 的结果不同：{sentence}",
    ),
    (
        r"code that depends on Python state, a fused operator, or a random number; look at the first output or gradient"
        r" that differs, and train in PyNative mode meanwhile",
        "代码依赖 Python 状态、融合算子或随机数；请看第一个不同的输出或梯度，在此期间用 PyNative 模式训练",
    ),
    (
        r"code that depends on Python state, a fused operator, or a random number; train in PyNative mode meanwhile;"
        r" run the command to learn which operator differs first",
        "代码依赖 Python 状态、融合算子或随机数；在此期间用 PyNative 模式训练；运行下面的命令可知哪个算子最先不同",
    ),
)

_NOUNS = {"weight": "权重", "gradient": "梯度", "output": "输出", "value": "值"}
_SIDES = {"above": "高于", "below": "低于", "at least": "不低于"}
_NOUN = rf"(?P<noun>{'|'.join(_NOUNS)})"
_LIMIT = rf"(?P<side>{'|'.join(_SIDES)}) (?P<limit>[^\s,;]+)"
_NUMBER = r"(?P<actual>\S+)"
_KINDS = r"(?P<kinds>[\d,]+ (?:NaN|[+-]Inf)(?:, [\d,]+ (?:NaN|[+-]Inf))*)"

_SHAPES: tuple[tuple[str, str], ...] = (
    (rf"{_KINDS} of (?P<all>[\d,]+)", "{all} 个元素中有 {kinds}"),
    (r"the rest (?P<rest>.+)", "其余 {rest}"),
    (r"(?P<spread>\S+ … \S+), mean (?P<mean>\S+)", "{spread}，均值 {mean}"),
    (r"empty", "空"),
    (rf"mean of \|{_NOUN}\| is {_NUMBER}, {_LIMIT}", "|{noun}| 的均值为 {actual}，{side} {limit}"),
    (rf"mean {_NOUN} is {_NUMBER}, {_LIMIT}", "{noun}的均值为 {actual}，{side} {limit}"),
    (rf"largest {_NOUN} is {_NUMBER}, {_LIMIT}", "{noun}的最大值为 {actual}，{side} {limit}"),
    (rf"smallest {_NOUN} is {_NUMBER}, {_LIMIT}", "{noun}的最小值为 {actual}，{side} {limit}"),
    (
        rf"largest minus smallest {_NOUN} is {_NUMBER}, {_LIMIT}",
        "{noun}的最大值与最小值之差为 {actual}，{side} {limit}",
    ),
    (r"all elements are zero", "所有元素为零"),
    (rf"{_NUMBER} of the elements are zero, {_LIMIT}", "{actual} 的元素为零，{side} {limit}"),
    (rf"{_NUMBER} of the elements lie in (?P<range>\[.+?\]), {_LIMIT}", "{actual} 的元素在 {range} 内，{side} {limit}"),
    (
        rf"mean \|change\| is {_NUMBER} of mean \|{_NOUN}\|, {_LIMIT}",
        "|变化| 的均值是 |{noun}| 均值的 {actual}，{side} {limit}",
    ),
    (r"no element changed by more than (?P<limit>.+)", "没有元素的变化超过 {limit}"),
    (r"there is no previous value yet", "还没有上一步的值"),
    (r"the previous value did not fit into the memory budget", "上一步的值超出内存预算"),
    (r"its values are not kept", "没有保留它的值"),
    (r"exact", "重放逐位一致"),
    (
        r"the gradient scaler skipped (?P<share>\S+) of the last (?P<all>\d+) updates",
        "梯度缩放器跳过了最近 {all} 次更新中的 {share}",
    ),
)
_STORIES = tuple((re.compile(shape), text) for shape, text in _STORY_SHAPES)
_TABLE = (*_STORIES, *((re.compile(shape), text) for shape, text in _SHAPES))
_CLAUSE = re.compile(r"(?:`[^`]*`?|;(?! )|[^`;])+")
"""Up to a semicolon of the sentence; one in a quoted line of code ends nothing."""
_SAMPLES = re.compile(
    r"samples? (?P<listed>[\d, ]+) of the (?P<all>\d+) in the batch causes? it"
    r"(?: \((?P<known>.*)\))?(?P<others>, and perhaps others)?"
)
_NOT_EVALUATED = "not evaluated: "
_EXPRESSION = re.compile(r"(?P<readings>\w+ is \S+(?:, \w+ is \S+)*): (?P<text>.+)")
_WORDS = {
    "noun": _NOUNS,
    "side": _SIDES,
    "phase": _PHASES,
    "ending": _ENDINGS,
    "moment": _MOMENTS,
    "later": _LATER,
}


def in_chinese(sentence: str) -> str:
    """The sentence in Chinese; what has no known shape stays as it is."""
    if sentence.startswith(_NOT_EVALUATED):
        return "未判断：" + in_chinese(sentence.removeprefix(_NOT_EVALUATED))
    samples = _SAMPLES.fullmatch(sentence)
    if samples is not None:
        return _guilty(samples)
    expression = _EXPRESSION.fullmatch(sentence)
    if expression is not None:
        return f"{expression['readings'].replace(' is ', ' 为 ').replace(', ', '，')}：{expression['text']}"
    whole = _fitting(_STORIES, sentence)
    if whole is not None:
        return whole
    return "；".join(_fitting(_TABLE, clause.strip()) or clause.strip() for clause in _CLAUSE.findall(sentence))


def _guilty(samples: re.Match[str]) -> str:
    known = (samples["known"] or "").replace("dataset index", "数据集索引").replace("; ", "；")
    known = f"（{known}）" if known else ""
    others = "，也许还有别的" if samples["others"] else ""
    return f"由这一批 {samples['all']} 个样本中的 {samples['listed']} 号引起{known}{others}"


def _fitting(table: tuple[tuple[re.Pattern[str], str], ...], sentence: str) -> str | None:
    for shape, text in table:
        found = shape.fullmatch(sentence)
        if found is not None:
            return text.format(**{name: _word(name, value or "") for name, value in found.groupdict().items()}).strip()
    return None


def _word(name: str, value: str) -> str:
    if name in ("sentence", "then"):
        return in_chinese(value)
    if name == "kinds":
        return "、".join(" 个 ".join(one.split()) for one in value.split(", "))
    return _WORDS.get(name, {}).get(value, value)
