"""The sentences misstep stores with a run, said in Chinese.

Facts are stored once, with a sentence in English beside them; whoever shows it to a Chinese reader says it again here.
Every sentence has a fixed shape, so a table of shapes is enough, also for runs recorded years ago.

>>> in_chinese("3 NaN of 2,048; the rest -2.831 … 3.009")
'2,048 个元素中有 3 个 NaN；其余 -2.831 … 3.009'
"""

from __future__ import annotations

import re

from misstep.core import chinesestories as stories

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
_STORIES = tuple((re.compile(shape), text) for shape, text in stories.SHAPES)
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
    "phase": stories.PHASES,
    "ending": stories.ENDINGS,
    "moment": stories.MOMENTS,
    "later": stories.LATER,
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
