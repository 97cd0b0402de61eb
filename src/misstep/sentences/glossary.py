"""The words that mean one thing everywhere: terminal, page, documents.

Chinese follows MindSpore's and MindInsight's guides. `never` lists the words that were, or could be, used for the same
thing; a test looks for them in every catalogue and in the Chinese documents. docs/glossary.md is written from here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the tool in both languages, and what it means."""

    en: str
    zh: str
    meaning: str
    meaning_zh: str
    never: tuple[str, ...] = ()
    """Regular expressions of Chinese that should have used this term."""


TERMS: tuple[Term, ...] = (
    Term("run", "训练", "one training, recorded in one directory", "一次训练，记录在一个目录中"),
    Term(
        "step",
        "轮次",
        "one update of the weights; the first is step 1, step 0 is the state before it",
        "一次权重更新；从 1 开始，0 是更新之前的状态",
        (
            r"第\s*(?:\{[^}]*\}|\d+).{0,12}步",
            r"步数",
            r"\} 步(?!骤)",
            r"每一?步",
            r"上一步",
            r"这一步",
            r"训练步(?!骤)",
        ),
    ),
    Term(
        "rank",
        "逻辑卡",
        "one process of a distributed training",
        "分布式训练中的一个进程",
        (r"个进程(?=[）)，。]|$)", r"进程 \{rank\}"),
    ),
    Term("tensor", "张量", "an array of numbers in a training", "训练中的一个数组"),
    Term("operator", "算子", "one operation of the framework, such as aten.log", "框架的一个操作，如 aten.log"),
    Term("module", "模块", "a layer or block (MindSpore: Cell)", "网络层或模块（MindSpore 中为 Cell）"),
    Term(
        "node",
        "节点",
        "a module, operator or parameter in the graph",
        "计算图中的模块、算子或参数",
    ),
    Term("parameter, weight", "参数、权重", "what the optimizer updates", "优化器更新的张量"),
    Term("gradient", "梯度", "the derivative of the loss", "损失的导数"),
    Term("optimizer", "优化器", "what updates the weights", "更新权重的对象"),
    Term("loss", "损失", "the value that training lowers", "训练要降低的值"),
    Term("loss scale", "损失缩放", "the factor that keeps float16 gradients in range", "使 float16 梯度不下溢的系数"),
    Term("overflow", "溢出", "NaN or Inf", "出现 NaN 或 Inf", ("上溢出",)),
    Term(
        "watchpoint",
        "监测点",
        "a condition checked on chosen tensors at every step",
        "在每个轮次对选定张量检查的条件",
        ("监视点", "观察点"),
    ),
    Term("hit", "命中", "a tensor met a watchpoint's condition", "张量满足监测点的条件"),
    Term(
        "verdict",
        "结论",
        "where the first bad value of a run appeared, and from what",
        "训练中第一个异常值出现在哪里、由何而来",
        ("判决",),
    ),
    Term("finding", "发现", "a fault or a waste, with evidence and advice", "一个问题或浪费，附证据和建议"),
    Term("replay", "重放", "running a step a second time, to look closer", "把一个轮次再运行一遍，以便看得更细"),
    Term("capsule", "胶囊", "everything needed to replay a step later", "以后重放一个轮次所需的全部内容"),
    Term(
        "dump",
        "Dump 数据",
        "whole tensors written to disk",
        "写到磁盘上的完整张量",
        ("转储",),
    ),
    Term(
        "checkpoint",
        "Checkpoint",
        "a file of weights",
        "保存权重的文件",
        ("检查点",),
    ),
    Term("flight record", "飞行记录", "what a run leaves when it ends badly", "训练异常结束时留下的记录"),
    Term("compare", "对比", "put two things side by side", "把两份数据并排查看"),
    Term("graph mode", "图模式", "MindSpore compiles the network", "MindSpore 编译整个网络"),
    Term("PyNative mode", "PyNative 模式", "MindSpore runs operator by operator", "MindSpore 逐算子执行"),
)


def page(lang: str) -> str:
    """The glossary as a Markdown page."""
    zh = lang == "zh"
    title = "# 术语" if zh else "# Glossary"
    lead = (
        "终端、网页和文档使用同一套词。"
        if zh
        else "One word for one thing: in the terminal, on the page, in the documents."
    )
    columns = "| English | 中文 | 含义 |" if zh else "| English | 中文 | meaning |"
    rows = [f"| {term.en} | {term.zh} | {term.meaning_zh if zh else term.meaning} |" for term in TERMS]
    note = "由 `misstep/sentences/glossary.py` 生成。" if zh else "Written from `misstep/sentences/glossary.py`."
    return "\n".join([title, "", lead, "", columns, "| --- | --- | --- |", *rows, "", note, ""])
