"""Rules about attention and language models."""

from __future__ import annotations

from misstep.sentences.text import Text

NO_CAUSAL_MASK = Text(
    "the model sees the tokens it is to predict: the causal mask is missing", "模型能看到要预测的词元：缺少因果掩码"
)
NO_CAUSAL_MASK_FIX = Text(
    "use is_causal=True, or a mask that is −inf above the diagonal", "使用 is_causal=True，或对角线以上为 −inf 的掩码"
)
NO_CAUSAL_MASK_WHEN = Text(
    "targets are the next tokens of the input, and attention gives weight to later positions",
    "标签是输入的下一个词元，而注意力给了之后的位置权重",
)
INVERTED_MASK = Text("the causal mask is inverted: only later tokens are seen", "因果掩码反了：只能看到之后的词元")
INVERTED_MASK_FIX = Text(
    "in PyTorch, True in attn_mask of MultiheadAttention hides, and in scaled_dot_product_attention it shows",
    "PyTorch 中，MultiheadAttention 的 attn_mask 里 True 表示遮住，而 scaled_dot_product_attention 里表示可见",
)
INVERTED_MASK_WHEN = Text("weight on later positions, none on earlier ones", "权重在之后的位置，之前的位置没有")
NOT_SHIFTED = Text(
    "the targets are the inputs themselves: nothing is to be predicted", "标签就是输入本身：没有要预测的内容"
)
NOT_SHIFTED_FIX = Text(
    "shift them: inputs tokens[:, :-1], targets tokens[:, 1:]", "错开一位：输入 tokens[:, :-1]，标签 tokens[:, 1:]"
)
NOT_SHIFTED_WHEN = Text(
    "attention is causal, and the targets are the same tokens as the inputs", "注意力是因果的，而标签与输入的词元相同"
)
