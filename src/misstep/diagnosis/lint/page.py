"""The documentation page of `misstep lint`, made from its rules, so that it lists just what there is."""

from __future__ import annotations

import re

from misstep.diagnosis.lint import RULES
from misstep.sentences.cli.lint import SEVERITIES
from misstep.sentences.language import Language
from misstep.sentences.text import Text

_HEAD: dict[str, str] = {
    "en": """# Mistakes in the source

`misstep lint` reads a training script and names what is wrong with it, without running it:

<!-- test: shell -->
```console
$ misstep lint examples
```

It follows names through imports and assignments, into other files of the project too, and stays silent on what it
cannot resolve. `--format sarif` writes what code hosts show beside a change, `--json` is for programs, and the text
form (`path:line:column: message [rule]`) is what editors jump to. Exit code 3 on a finding.

`# misstep: ignore[rule]` at the end of a line switches a rule off there; `--only` and `--without` choose rules.

What only shows while it runs (a layer that dies, a loss that does not depend on the network) is the business of
`misstep run`.

| rule | severity | what it found | what to do |
| --- | --- | --- | --- |
""",
    "zh": """# 源码中的错误

`misstep lint` 阅读训练脚本，不运行即指出其中的错误：

<!-- test: shell -->
```console
$ misstep lint examples
```

它沿着 import 和赋值解析名称，也会进入项目的其他文件；无法解析的不报告。`--format sarif` 输出代码托管平台可在变更旁
显示的格式，`--json` 供程序使用，文本形式（`path:line:column: 说明 [规则]`）可供编辑器跳转。有发现时退出码为 3。

在行尾写 `# misstep: ignore[规则]` 可在该行关闭规则；`--only` 与 `--without` 选择规则。

只有运行时才显现的问题（失活的层、与网络无关的损失）由 `misstep run` 负责。

| 规则 | 级别 | 发现 | 建议 |
| --- | --- | --- | --- |
""",
}
_GAP = re.compile(r"\{(\w+)[^}]*\}")


def with_gaps(text: Text, language: Language) -> str:
    """A text for a table of a page, with the names of its gaps in italics."""
    shown = _GAP.sub(r"*\1*", text.zh if language == "zh" else text.en)
    return re.sub(r"`([^`]*\*\w+\*[^`]*)`", r"\1", shown).replace("|", "\\|")


def page(language: Language) -> str:
    """The page in that language."""
    rows = []
    for rule in sorted(RULES.values(), key=lambda one: one.id):
        texts = [with_gaps(text, language) for text in (rule.message, rule.advice)]
        rows.append(f"| `{rule.id}` | {SEVERITIES[rule.severity].say(language, {})} | {texts[0]} | {texts[1]} |")
    return _HEAD[language] + "\n".join(rows) + "\n"
