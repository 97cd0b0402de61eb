"""The journal keeps a sentence as English, id and arguments; any reader can say it in its own language."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from misstep.core.address import Address
from misstep.core.finding import Finding, TensorFact, Verdict
from misstep.core.stats import TensorStats
from misstep.core.watching.watch import Hit
from misstep.sentences import findings, hits, journal, replay
from misstep.sentences.text import Sentence, said
from misstep.store.codec import decode, decode_facts, encode, encode_facts, from_json, to_json

STATS = TensorStats(8, 3, 0, 0, 0, 0, 5, -1.5, 2.5, 0.5, 0.5, 3.0, 1.0)


def stored(record: object) -> object:
    return from_json(to_json(encode(record)))


def test_a_hit_keeps_its_reason_in_both_languages() -> None:
    hit = Hit(1, 2, Address("fc", "output", step=3, rank=0), STATS.bad())
    plain = stored(hit)
    assert isinstance(plain, dict)
    assert plain["reason"] == "3 NaN of 8"
    assert plain["said"]["reason"]["id"] == "hits.bad"
    assert said(decode(Hit, plain).reason, "zh") == "8 个元素中有 3 个 NaN"


def test_a_finding_keeps_every_piece_of_evidence() -> None:
    evidence = (findings.NODE.of(node="fc"), "train.py:3 `y = x`")
    finding = Finding("rule", findings.RATE_ZERO.of(), evidence=evidence, advice=findings.REPLACE_IT.of())
    again = decode(Finding, stored(finding))
    assert again == finding
    assert [said(one, "zh") for one in again.evidence] == ["节点 fc", "train.py:3 `y = x`"]
    assert said(again.advice, "zh") == "请替换它，或在支持它的设备上运行"


def test_a_verdict_says_the_same_after_the_journal() -> None:
    fact = TensorFact("fc:output@3", STATS.describe(), nan=3, count=8)
    exact = replay.NOT_EXACT.of(why=replay.LOSS_DIFFERS.of(why=replay.STATE_CHANGED.of()))
    verdict = Verdict(3, 0, "optimizer", "nan", "fc", "Linear", outputs=(fact,), inputs=(fact,), exact=exact)
    again = decode(Verdict, stored(verdict))
    assert again == verdict
    assert again.sentence().say("zh") == verdict.sentence().say("zh")
    assert (
        again.sentence()
        .say("zh")
        .startswith("轮次 3，优化器，fc (Linear)：output 的 8 个元素中有 3 个 NaN；其余 -1.5 … 2.5")
    )
    assert said(again.replayed, "zh") == "该轮次已重放：不完全一致：损失不同（所记录的状态之外有变化）"


def test_facts_of_an_event_keep_their_sentences() -> None:
    facts = {"text": journal.SKIPPED.of(step=9), "step": 9, "named": ["a", hits.EMPTY.of()]}
    plain = from_json(to_json(encode_facts(facts)))
    assert plain["text"] == "the update of step 9 was skipped"
    again = decode_facts(plain)
    assert set(again) == {"text", "step", "named"}
    assert said(again["text"], "zh") == "轮次 9 的更新被跳过"
    assert [said(one, "zh") for one in again["named"]] == ["a", "空"]


def test_a_number_that_is_not_finite_comes_back() -> None:
    sentence = hits.MEASURES["mean"].of(noun="x", actual=math.nan, side="above", limit=math.inf)
    again = decode_facts(from_json(to_json(encode_facts({"text": sentence}))))["text"]
    assert isinstance(again, Sentence)
    assert again.say("zh") == sentence.say("zh") == "x的均值为 nan，above inf"


def test_a_run_recorded_before_is_read_by_its_wording() -> None:
    again = decode_facts({"text": "the update of step 9 was skipped; loss scale 65536"})
    assert type(again["text"]) is str
    assert said(again["text"], "zh") == "轮次 9 的更新被跳过；损失缩放 65536"


def test_damage_to_the_said_part_costs_only_the_translation() -> None:
    for damage in ({"text": 3}, {"text": {"id": "no.such", "arguments": {}}}, [], "x", {"text": None}):
        again = decode_facts({"text": "the learning rate is 0", "said": damage})
        assert again["text"] == "the learning rate is 0"
        assert said(again["text"], "zh") == "学习率为 0"


def test_old_readers_find_the_english_where_it_always_was(tmp_path: Path) -> None:
    plain = msgspec.json.decode(to_json(encode(Finding("rule", findings.RATE_ZERO.of()))))
    assert plain["title"] == "the learning rate is 0"
