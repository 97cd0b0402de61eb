"""Where the first bad value appeared."""

from __future__ import annotations

from misstep.sentences.text import Text

PLACE = Text("step {step}, {phase}, {place}", "轮次 {step}，{phase}，{place}")
ROLE_HAS = Text("{place}: {role} has {found:sentence}", "{place}：{role} 的 {found:sentence}")
INPUTS_FINITE = Text("inputs were finite", "输入均为有限值")
INPUT_BAD = Text("input {address} was already bad", "输入 {address} 已有异常值")
REPLAYED = Text("the step was replayed: {exact:sentence}", "该轮次已重放：{exact:sentence}")
HIDDEN = Text(
    "{node} hides it: {type} turns NaN into finite values here", "{node} 掩盖了它：{type} 在这里把 NaN 变成有限值"
)
FIRST_BAD = Text("first bad value: step {step}, {phase}, {node}", "第一个异常值：轮次 {step}，{phase}，{node}")
EVIDENCE_BAD = Text("{role}: {found:sentence}", "{role}：{found:sentence}")
EVIDENCE_INPUT = Text("input {node}: {found:sentence}", "输入 {node}：{found:sentence}")
EVIDENCE_MODULE = Text(
    "known to the module; `misstep run --level op` names the operator",
    "已定位到模块；用 `misstep run --level op` 可定位到算子",
)
EVIDENCE_STEP = Text(
    "only the step is known; `misstep run --level op` names the operator",
    "仅定位到轮次；用 `misstep run --level op` 可定位到算子",
)
BORN = Text("{kind} born in {node}, step {step}", "{node} 在轮次 {step} 产生 {kind}")
BORN_ON = Text("{kind} born in {node}, step {step}, rank {rank}", "逻辑卡 {rank} 的 {node} 在轮次 {step} 产生 {kind}")
