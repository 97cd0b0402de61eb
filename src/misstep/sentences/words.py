"""Words and small phrases that other sentences are made of."""

from __future__ import annotations

from misstep.sentences.text import Sentence, Text

SPOKEN = Text("{en}{zh:hidden}", "{zh}{en:hidden}")
CLAUSES = Text("{parts:clauses}", "{parts:clauses}")
DID_YOU_MEAN = Text("; did you mean {name}?", "；是否指 {name}？")
DID_YOU_MEAN_ONE_OF = Text("; did you mean {names:list} or {last}?", "；是否指 {names:list} 或 {last}？")
KNOWN = Text("; known: {names:list}", "；可用的有：{names:list}")
KNOWN_AND_MORE = Text("; known: {names:list}, …", "；可用的有：{names:list} 等")

PHASES: dict[str, Text] = {
    "input": Text("input", "输入"),
    "forward": Text("forward", "前向"),
    "loss": Text("loss", "损失"),
    "backward": Text("backward", "反向"),
    "optimizer": Text("optimizer", "优化器"),
}
ENDINGS: dict[str, Text] = {
    "finished": Text("finished", "已完成"),
    "failed": Text("failed", "失败"),
    "stopped": Text("stopped", "已停止"),
    "detached": Text("detached", "已分离"),
}
CONTROL: dict[str, Text] = {
    "paused": Text("paused", "已暂停"),
    "running": Text("running", "运行中"),
    "pausing": Text("pausing", "正在暂停"),
    "stepping": Text("stepping", "单步中"),
}
NOUNS: dict[str, Text] = {
    "weight": Text("weight", "权重"),
    "gradient": Text("gradient", "梯度"),
    "activation": Text("output", "输出"),
    "tensor": Text("value", "值"),
}
SIDES: dict[str, Text] = {"gt": Text("above", "高于"), "lt": Text("below", "低于"), "ge": Text("at least", "不低于")}
UNKNOWN = Text("unknown", "未知")


def spoken(en: str, zh: str) -> str:
    """A sentence another process already said in both languages."""
    return SPOKEN.of(en=en, zh=zh) if zh else en


def word(table: dict[str, Text], name: str) -> str | Sentence:
    """The word for a name out of a table; the name itself when the table does not have it."""
    return table[name].of() if name in table else name
