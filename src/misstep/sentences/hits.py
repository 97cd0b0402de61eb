"""Why a watchpoint hit, and what is in a tensor."""

from __future__ import annotations

from misstep.sentences.text import Text

# ── what is in a tensor ──────────────────────────────────────────────────────────────────────────────────────────────

SOME: dict[str, Text] = {
    "nan": Text("{n:count} NaN", "{n:count} 个 NaN"),
    "pos_inf": Text("{n:count} +Inf", "{n:count} 个 +Inf"),
    "neg_inf": Text("{n:count} -Inf", "{n:count} 个 -Inf"),
}
BAD = Text("{kinds:list} of {count:count}", "{count:count} 个元素中有 {kinds:list}")
REST = Text("the rest {low:number} … {high:number}", "其余 {low:number} … {high:number}")
SPREAD = Text("{low:number} … {high:number}, mean {mean:number}", "{low:number} … {high:number}，均值 {mean:number}")
EMPTY = Text("empty", "空")
BAD_EVALUATION = Text(
    "evaluation after step {step}: {op} gave {description:sentence} at {place}",
    "轮次 {step} 之后的评估：{op} 得到 {description:sentence}，位置 {place}",
)
BAD_AT_THE_END = Text("at the end of the run: {description:sentence}", "训练结束时：{description:sentence}")

# ── why a watchpoint hit ─────────────────────────────────────────────────────────────────────────────────────────────

NOT_EVALUATED = Text("not evaluated: {why}", "未判断：{why}")
MISSING: dict[str, Text] = {
    "no_previous": Text("there is no previous value yet", "还没有上一轮次的值"),
    "out_of_memory": Text("the previous value did not fit into the memory budget", "上一轮次的值超出内存预算"),
    "no_value": Text("its values are not kept", "没有保留它的值"),
}
MEASURES: dict[str, Text] = {
    "abs_mean": Text(
        "mean of |{noun}| is {actual:number}, {side} {limit:g}", "|{noun}| 的均值为 {actual:number}，{side} {limit:g}"
    ),
    "mean": Text(
        "mean {noun} is {actual:number}, {side} {limit:g}", "{noun}的均值为 {actual:number}，{side} {limit:g}"
    ),
    "max": Text(
        "largest {noun} is {actual:number}, {side} {limit:g}", "{noun}的最大值为 {actual:number}，{side} {limit:g}"
    ),
    "min": Text(
        "smallest {noun} is {actual:number}, {side} {limit:g}", "{noun}的最小值为 {actual:number}，{side} {limit:g}"
    ),
    "spread": Text(
        "largest minus smallest {noun} is {actual:number}, {side} {limit:g}",
        "{noun}的最大值与最小值之差为 {actual:number}，{side} {limit:g}",
    ),
    "update_ratio": Text(
        "mean |change| is {actual:number} of mean |{noun}|, {side} {limit:g}",
        "|变化| 的均值是 |{noun}| 均值的 {actual:number}，{side} {limit:g}",
    ),
}
LIKE_A_MASK = Text("looks like a mask: nothing else in the step was bad", "像是掩码：该轮次没有其他异常值")
ALL_ZERO = Text("all elements are zero", "所有元素为零")
ZEROS = Text(
    "{actual:number}% of the elements are zero, {side} {limit:g}%", "{actual:number}% 的元素为零，{side} {limit:g}%"
)
IN_RANGE = Text(
    "{actual:number}% of the elements lie in [{start:g}, {end:g}], {side} {limit:g}%",
    "{actual:number}% 的元素在 [{start:g}, {end:g}] 内，{side} {limit:g}%",
)
UNCHANGED = Text(
    "no element changed by more than rtol {rtol:g}, atol {atol:g}", "没有元素的变化超过 rtol {rtol:g}、atol {atol:g}"
)
OTHER = Text("{parameter}: {actual:number}, {side} {limit:g}", "{parameter}：{actual:number}，{side} {limit:g}")
READING = Text("{name} is {value:number}", "{name} 为 {value:number}")
EXPRESSION = Text("{readings:list}: {text}", "{readings:list}：{text}")
SCALER_SKIPS = Text(
    "the gradient scaler skipped {share:.0%} of the last {count} updates",
    "梯度缩放器跳过了最近 {count} 次更新中的 {share:.0%}",
)
AT = Text("{address}: {why:sentence}", "{address}：{why:sentence}")
