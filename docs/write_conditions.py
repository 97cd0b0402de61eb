"""Write docs/conditions.md and docs/conditions.zh.md from the table in misstep.core.watching.conditions.

python docs/write_conditions.py          tests/core/test_reference.py fails when the pages are stale
"""

from __future__ import annotations

from pathlib import Path

from misstep.core.stats import SUMMARY
from misstep.core.watching.columns import DERIVED
from misstep.core.watching.conditions import ALIASES, CONDITIONS, USUAL, Condition, Parameter
from misstep.core.watching.expressions import FUNCTIONS
from misstep.core.watching.recommend import recommended
from misstep.core.watching.watchtext import SHORT_EXPRESSIONS, describe

PAGES = {"en": "conditions.md", "zh": "conditions.zh.md"}

RULES = {
    "abs_mean": "mean(\\|x\\|)",
    "max": "max(x)",
    "min": "min(x)",
    "mean": "mean(x)",
    "spread": "max(x) - min(x)",
    "zero_percentage": "100 · count(x = 0) / n",
    "range_percentage": "100 · count(start ≤ x ≤ end) / n",
    "update_ratio": "mean(\\|x - x'\\|) / (mean(\\|x'\\|) + epsilon)",
}
MARKS = {"gt": ">", "lt": "<", "ge": "≥"}

TEXT = {
    "en": {
        "title": "Conditions",
        "intro": """A watchpoint asks a condition of a set of tensors at every step. Write it on the command line or in
Python:

```console
$ misstep run --watch 'gradient_vanishing(abs_mean_lt=1e-9) on encoder.*:grad then pause' python train.py
$ misstep run --watch 'max > 6e4 on *:output but *.head then dump limit 5' python train.py
```

```python
session.watch("gradient_vanishing", on="encoder.*:grad", abs_mean_lt=1e-9, then="pause")
```

After the condition come, in any order: `on` patterns, `but` patterns to leave out, `of` node types, `then`
note, pause, dump or stop, and `limit`, the number of hits after which it falls silent.""",
        "rules": """## Rules

- Several thresholds in one watchpoint: it hits when **any** of them does; the hit shows each with its actual value.
- A threshold that is not set is off. With none set, the usual values in the table apply, where there are any.
- A tensor with NaN or Inf, or without a previous value where one is needed, is **not evaluated**: the hit has error
  marks (`nan`, `inf`, `no_previous`, `out_of_memory`, `no_value`) and no actual values, once per tensor. The overflow
  conditions are never marked: NaN and Inf are what they ask for. Recommended watchpoints keep quiet instead: the
  overflow is told by its own watchpoint.
- Overflow is an *error*, a threshold a *warning*, a missing previous value *info*.
- Statistics are over the finite values in float64; an empty tensor trips nothing.
- Weights are recognised by role (`param`), not by name, so BatchNorm scales and embedding tables count. Gradients are
  `grad`, `grad_input`, `grad_output`; activations are the outputs of any node, narrowed with `of Tanh`.
- `weight_initialization` is asked before the first step only; changes from the first step on.
- `operator_overflow` once read a hardware flag. Here it means what the flag meant: the node's inputs were seen and
  finite, its output is not.
- x' is the value of the step before. `weight_not_changed` holds when it holds for every element. Its `equal_nan` is
  accepted for compatibility; a tensor with NaN is marked before it matters.
- For the recommended watchpoints, -Inf that appears in a step where nothing else is bad (no NaN, no +Inf, no bad
  gradient or loss) is taken for an attention mask and told once as info. Your own watchpoints are taken literally.""",
        "table": "| condition | short | looks at | asks | thresholds (usual value) | hits when |",
        "names": "## Short names",
        "expressions": "## Expressions",
        "expression_text": """Instead of a condition, a comparison in your own words: `abs_mean > 1e3 and nan == 0`,
`zeros / count >= 0.99`, `not (l2 < 1) or step > 100`, `0 < max < 3`. There are `and`, `or`, `not`,
comparisons, `+ - * /` and parentheses.
Names that begin with `previous.` keep the value of the step before for the tensors watched.""",
        "functions": "Functions",
        "values": "Names",
        "recommended": "## Recommended",
        "recommended_text": "The first five are on by default: plain statistics answer them. The others need more.",
        "category": {"weight": "weights", "gradient": "gradients", "activation": "activations", "tensor": "any tensor"},
        "overflow": "NaN or Inf anywhere",
        "operator_overflow": "NaN or Inf, inputs finite",
        "unchanged": "every \\|x - x'\\| ≤ atol + rtol · \\|x'\\|",
        "hidden": "also",
    },
    "zh": {
        "title": "监测条件",
        "intro": """监测点在每个轮次对一组张量检查一个条件。可以写在命令行或 Python 中：

```console
$ misstep run --watch 'gradient_vanishing(abs_mean_lt=1e-9) on encoder.*:grad then pause' python train.py
$ misstep run --watch 'max > 6e4 on *:output but *.head then dump limit 5' python train.py
```

```python
session.watch("gradient_vanishing", on="encoder.*:grad", abs_mean_lt=1e-9, then="pause")
```

条件之后可按任意顺序写：`on` 匹配模式，`but` 排除的模式，`of` 节点类型，`then` note（记录）、pause（暂停）、
dump（Dump 数据）或 stop（结束），以及 `limit`：命中多少次后不再报告。""",
        "rules": """## 规则

- 一个监测点设置多个阈值时，满足**任意一个**即命中；命中信息给出每个阈值及其实际值。
- 未设置的阈值不生效；一个都未设置时，采用表中的默认值（如有）。
- 张量含有 NaN 或 Inf，或需要上一轮次的值而没有时，**不做判断**：命中信息带有错误标记（`nan`、`inf`、`no_previous`、
  `out_of_memory`、`no_value`），没有实际值，每个张量只报告一次。溢出类条件检查的正是 NaN 和 Inf，因此从不标记。
  推荐的监测点不报告标记：溢出由专门的监测点报告。
- 溢出为*错误*（error），阈值类为*警告*（warning），缺少上一轮次的值为*提示*（info）。
- 统计值只计有限值，以 float64 计算；空张量不会命中。
- 权重按角色（`param`）识别而不是按名称，因此 BatchNorm 的缩放参数和嵌入表也算权重。梯度为 `grad`、`grad_input`、
  `grad_output`；激活值为任意节点的输出，可用 `of Tanh` 限定类型。
- `weight_initialization` 只在第一步之前检查；与变化有关的条件从第一步开始检查。
- `operator_overflow` 原本读取硬件溢出标志；这里按其本意判断：节点的输入已检查且均为有限值，输出却不是。
- x' 为上一轮次的值。`weight_not_changed` 要求每个元素都满足。`equal_nan` 仅为兼容而接受：含 NaN 的张量会先被标记。
- 对推荐的监测点，如果某个轮次除 -Inf 外没有其他异常（无 NaN、无 +Inf、梯度和损失正常），则视为注意力掩码，
  只提示一次。用户自己的监测点严格按字面执行。""",
        "table": "| 条件 | 缩写 | 对象 | 含义 | 阈值（默认值） | 命中条件 |",
        "names": "## 简称",
        "expressions": "## 表达式",
        "expression_text": """除条件外，也可以直接写比较式：`abs_mean > 1e3 and nan == 0`、`zeros / count >= 0.99`、
`not (l2 < 1) or step > 100`、`0 < max < 3`。支持 `and`、`or`、`not`、比较、`+ - * /` 和括号。
以 `previous.` 开头的名称会为被监测的张量保留上一轮次的值。""",
        "functions": "函数",
        "values": "名称",
        "recommended": "## 推荐的监测点",
        "recommended_text": "前五个默认开启（只需普通统计值），其余需要上一轮次的值或完整张量。",
        "category": {"weight": "权重", "gradient": "梯度", "activation": "激活值", "tensor": "任意张量"},
        "overflow": "出现 NaN 或 Inf",
        "operator_overflow": "输入有限，输出出现 NaN 或 Inf",
        "unchanged": "每个元素 \\|x - x'\\| ≤ atol + rtol · \\|x'\\|",
        "hidden": "另有",
    },
}  # fmt: skip


def page(language: str) -> str:
    """The whole reference in one language."""
    text = TEXT[language]
    lines = [
        f"# {text['title']}",
        "",
        "<!-- written by docs/write_conditions.py -->",
        "",
        text["intro"],
        "",
        text["table"],
        "|---|---|---|---|---|---|",
        *(_row(condition, language) for condition in CONDITIONS.values()),
        "",
        text["rules"],
        "",
        text["names"],
        "",
        ", ".join(f"`{short}` = {_meaning(short)}" for short in [*SHORT_EXPRESSIONS, *_spoken()]),
        "",
        text["expressions"],
        "",
        text["expression_text"],
        "",
        f"- {text['values']}: {', '.join(f'`{name}`' for name in [*(SUMMARY.names or ()), *DERIVED])}",
        f"- {text['functions']}: {', '.join(f'`{name}`' for name in FUNCTIONS)}",
        "",
        text["recommended"],
        "",
        text["recommended_text"],
        "",
        "```text",
        *(describe(watch) for watch in recommended()),
        "```",
        "",
    ]
    return "\n".join(map(str, lines))


def _row(condition: Condition, language: str) -> str:
    text = TEXT[language]
    shown = [parameter for parameter in condition.parameters if not parameter.hidden]
    hidden = [parameter for parameter in condition.parameters if parameter.hidden]
    parameters = ", ".join(map(_parameter, shown)) or "-"
    if hidden:
        parameters += f"; {text['hidden']} {', '.join(map(_parameter, hidden))}"
    summary = condition.summary if language == "en" else condition.summary_zh
    categories = text["category"]
    assert isinstance(categories, dict)
    cells = (f"`{condition.name}`", condition.abbreviation, categories[condition.category], summary, parameters)
    return f"| {' | '.join(cells)} | {_rule(condition, language)} |"


def _rule(condition: Condition, language: str) -> str:
    text = TEXT[language]
    if condition.overflow:
        return str(text.get(condition.name, text["overflow"]))
    rules = [
        str(text["unchanged"])
        if parameter.measure == "unchanged"
        else f"{RULES[parameter.measure]} {MARKS[parameter.relation or 'gt']} {parameter.name}"
        for parameter in condition.thresholds
    ]
    return "<br>".join(rules)


def _parameter(parameter: Parameter) -> str:
    usual = parameter.default
    return f"`{parameter.name}`" + (
        "" if usual is None else f" ({str(usual).lower() if usual is False else f'{usual:g}'})"
    )


def _spoken() -> list[str]:
    abbreviations = {condition.abbreviation.lower() for condition in CONDITIONS.values()}
    return [alias for alias in ALIASES if alias not in abbreviations]


def _meaning(short: str) -> str:
    if short in SHORT_EXPRESSIONS:
        return f"`{SHORT_EXPRESSIONS[short]}`"
    usual = ", ".join(f"{name}={value:g}" for name, value in USUAL.get(short, {}).items())
    return f"`{ALIASES[short]}{f'({usual})' if usual else ''}`"


if __name__ == "__main__":
    for language, name in PAGES.items():
        (Path(__file__).parent / name).write_text(page(language), encoding="utf-8")
