"""What the command `misstep lint` says, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_LINT = Text(
    "Find mistakes in a training script without running it.\n\n"
    "PATHS are Python files or folders. Imports are followed into other files of the project; what cannot be resolved"
    " is not reported. `# misstep: ignore[rule]` on a line switches a rule off there. Exit code 3 on a finding.",
    "不运行即可发现训练脚本中的错误。\n\n"
    "PATHS 为 Python 文件或文件夹。会沿 import 查看项目的其他文件；无法解析的不报告。"
    "在某行写 `# misstep: ignore[规则]` 可在该行关闭规则。有发现时退出码为 3。",
)
HELP_FORMAT = Text(
    "text (path:line:column, for editors), json or sarif (for code hosts).",
    "text（path:line:column，供编辑器使用）、json 或 sarif（供代码托管平台使用）。",
)
HELP_ONLY = Text("Only this rule; may be repeated.", "只检查该规则；可重复。")
HELP_WITHOUT = Text("Not this rule; may be repeated.", "不检查该规则；可重复。")
HELP_RULES = Text("List the rules and end.", "列出全部规则后结束。")
CLEAN = Text(
    "nothing found in {files:count} {files:plural file|files} ({rules} rules)",
    "{files:count} 个文件中没有发现问题（{rules} 条规则）",
)
FOUND = Text(
    "{count:count} {count:plural finding|findings} in {files:count} {files:plural file|files}",
    "{files:count} 个文件中有 {count:count} 处发现",
)
NO_FILES = Text(
    "no Python file in {paths:list}; name a .py file or a folder that has some",
    "{paths:list} 中没有 Python 文件；请给出 .py 文件或包含它们的文件夹",
)
SEVERITIES: dict[str, Text] = {
    "error": Text("error", "错误"),
    "warning": Text("warning", "警告"),
    "info": Text("hint", "提示"),
}
