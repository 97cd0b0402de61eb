"""What is said of a file that cannot be read: which file, where in it, what was expected there."""

from __future__ import annotations

from misstep.sentences.text import Text

AT_BYTE = Text(
    "{path} is damaged at byte {offset:count} ({what}): expected {expected}; copy it again, or write it anew",
    "{path} 在第 {offset:count} 字节处损坏（{what}）：此处应为 {expected}；请重新复制，或重新生成该文件",
)
SOMEWHERE = Text(
    "{path} is damaged ({what}): {expected}; copy it again, or write it anew",
    "{path} 已损坏（{what}）：{expected}；请重新复制，或重新生成该文件",
)
TOO_MUCH = Text(
    "{path} asks for more than is read of one file ({what}): {expected}; a file made by a framework stays below that",
    "{path} 超出了单个文件的读取上限（{what}）：{expected}；框架生成的文件不会超过该上限",
)
NOT_OPENED = Text("{path} cannot be read: {why}", "无法读取 {path}：{why}")
