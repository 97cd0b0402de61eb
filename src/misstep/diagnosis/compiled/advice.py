"""What to do about a graph break: the kinds that most programs meet have a rewrite, others the compiler's own hint."""

from __future__ import annotations

from misstep.sentences.advice import compiled as words
from misstep.sentences.text import Sentence, Text

_KINDS: tuple[tuple[str, Text], ...] = (
    ("`print`", words.BREAK_PRINT),
    ("logging", words.BREAK_PRINT),
    ("generic_jump", words.BREAK_BRANCH),
    ("Data-dependent branching", words.BREAK_BRANCH),
    ("Tensor.item()", words.BREAK_ITEM),
    (".item()", words.BREAK_ITEM),
    ("numpy", words.BREAK_NUMPY),
    ("torch._dynamo.disable", words.BREAK_DISABLED),
    ("backward()", words.BREAK_BACKWARD),
)


def break_advice(reason: str, explanation: str, hint: str) -> Sentence | str:
    """The change of the code that removes a break."""
    for mark, advice in _KINDS:
        if mark in reason or mark in explanation:
            return advice.of()
    return hint
