"""The documentation page of `misstep diagnose`, with the table of its rules made from the rules."""

from __future__ import annotations

from misstep.diagnosis.lint.page import with_gaps
from misstep.diagnosis.rules import FAMILIES, RULES
from misstep.sentences.cli.diagnose import SEVERITIES
from misstep.sentences.diagnosis.unchecked import FAMILIES as FAMILY_NAMES
from misstep.sentences.language import Language

_HEAD: dict[str, str] = {
    "en": """# It does not learn

The loss is a number, and it does not fall. Every run that `misstep run` watches keeps facts about how it trains, and
`misstep diagnose` tells from them why it does not learn:

```console
$ misstep diagnose last
1. 2 of 4 weights never change: they are not in the optimizer
   [wiring.not-in-optimizer] error, 97% sure
   train.py:41 `model.head = nn.Linear(512, 37)`
   weights: head.weight, head.bias
   gradient norms 0.3 to 2.1, update 0
   the optimizer was made at train.py:38 `opt = AdamW(model.parameters(), lr=3e-4)`
   → fix: create the optimizer after train.py:41 `model.head = nn.Linear(512, 37)`
```

Causes come first, with evidence, the line and the change; what follows from a cause is listed below it. A healthy run
is called healthy in so many words, together with what could not be checked. `misstep run` prints the first cause at its
end. The run may still be going on; nothing of it is run again.

- `--json` for programs: `findings` with rule, severity, confidence, evidence, source and advice, and `unchecked`.
- `--html why.html` writes one file to send to a colleague.
- Exit code 3 on a finding of severity error.

## In the tests of your training code

<!-- test: shell -->
```console
$ misstep run --name tried python examples/torch_tune.py
$ misstep diagnose tried
```

<!-- test: python -->
```python
import misstep

misstep.assert_healthy("tried")                    # raises misstep.errors.Unhealthy, an AssertionError
for finding in misstep.diagnose("tried").causes:
    print(finding.rule, finding.advice)
```

A tuning trial with a sure cause of severity error ends early ([tuning](tuning.md)).

## What is looked at, and what it costs

At every level but `off`: who holds which weight and who made the optimizer where, the order of zero_grad, backward,
clip, step and schedulers, and on steps 1, 2, 3, 4, 6, 8, 12, 16 … everything from close by: gradients and updates of
every weight, the batch, and the graph of the loss from its end backwards, which shows the loss function, its targets
and every activation without having watched the forward. A look takes a few milliseconds; after the first it waits until
the training has earned it (half a percent of its time). The facts are a few kilobytes a look, in `facts.jsonl`
([the run directory](format.md)).

Not seen: the inside of steps that are compiled as a whole; saved tensors that go through hooks (activation
checkpointing), so that there the objective and activations are not checked, and that is said.

## Rules

| rule | severity | what it found | what to do | when |
| --- | --- | --- | --- | --- |
""",
    "zh": """# 训练学不到东西

损失是正常的数，却不下降。`misstep run` 观察的每次运行都会记录它如何训练的事实，
`misstep diagnose` 据此说明为什么学不到东西：

```console
$ misstep diagnose last --lang zh
1. 4 个权重中有 2 个从不变化：它们不在优化器中
   [wiring.not-in-optimizer] 错误，把握 97%
   train.py:41 `model.head = nn.Linear(512, 37)`
   权重：head.weight、head.bias
   梯度范数 0.3 到 2.1，更新为 0
   优化器创建于 train.py:38 `opt = AdamW(model.parameters(), lr=3e-4)`
   → 修改：请在 train.py:41 `model.head = nn.Linear(512, 37)` 之后创建优化器
```

原因在前，附证据、代码行和修改方法；由某个原因引起的列在其后。健康的运行会明确说健康，并说明哪些无法检查。
`misstep run` 结束时会打印第一个原因。运行可以仍在进行；不会重新运行任何内容。

- `--json` 供程序使用：`findings` 含规则、级别、把握、证据、代码行和建议，另有 `unchecked`。
- `--html why.html` 写成一个可发送给同事的文件。
- 有错误级发现时退出码为 3。

## 用于训练代码的测试

<!-- test: shell -->
```console
$ misstep run --name tried python examples/torch_tune.py
$ misstep diagnose tried
```

<!-- test: python -->
```python
import misstep

misstep.assert_healthy("tried")                    # 抛出 misstep.errors.Unhealthy，它是一种 AssertionError
for finding in misstep.diagnose("tried").causes:
    print(finding.rule, finding.advice)
```

有确定的错误级原因的调优 trial 会提前结束（[调优](tuning.zh.md)）。

## 查看哪些内容，开销多少

除 `off` 外的所有级别：谁持有哪个权重、优化器在哪一行创建，zero_grad、backward、裁剪、step 与调度器的顺序；
并在轮次 1、2、3、4、6、8、12、16 …… 仔细查看：每个权重的梯度与更新、批次，以及从损失往回的计算图：
不必观察前向，就能看到损失函数、标签和每个激活。一次查看需要几毫秒；最初几次之后，只用训练时间的千分之五。
每次查看的事实只有几 KB，保存在 `facts.jsonl`（[运行目录](format.md)）。

看不到的：整体编译的步的内部；经过钩子的保存张量（重计算），此时不检查目标和激活，并会说明。

## 规则

| 规则 | 级别 | 发现 | 建议 | 何时触发 |
| --- | --- | --- | --- | --- |
""",
}


def page(language: Language) -> str:
    """The page in that language."""
    rows = []
    for family in FAMILIES:
        for one in RULES.values():
            if one.family == family:
                said = [with_gaps(text, language) for text in (one.title, one.advice, one.threshold)]
                rows.append(f"| `{one.id}` | {SEVERITIES[one.severity].say(language, {})} | {' | '.join(said)} |")
    empty = [
        FAMILY_NAMES[one].say(language, {}) for one in FAMILIES if not any(x.family == one for x in RULES.values())
    ]
    tail = _NONE[language].format(families="、".join(empty) if language == "zh" else ", ".join(empty)) if empty else ""
    return _HEAD[language] + "\n".join(rows) + "\n" + tail


_NONE = {"en": "\nFamilies without a rule so far: {families}.\n", "zh": "\n尚无规则的类别：{families}。\n"}
