"""One book of held tensors: whatever is asked of it, the sum stays within memory_mb, and a refusal is counted."""

from __future__ import annotations

import random
from pathlib import Path

from tests.capture.fakes import Net, trained

from misstep.capture.keep.ledger import Ledger, ledger_of
from misstep.capture.session import Session

MB = 1 << 20


def test_the_setting_is_the_limit():
    assert ledger_of(1.5).limit_bytes == 1.5 * MB


def test_a_tensor_is_held_once_and_given_back_whole():
    ledger = Ledger(1000)
    account = ledger.account("previous values", share=0.5)
    assert account.take("fc:param", 300)
    assert account.take("fc:param", 200)
    assert (account.bytes, ledger.held()) == (200, {"previous values": 200})
    account.give_back("fc:param")
    account.give_back("fc:param")
    assert (account.bytes, ledger.bytes, ledger.held()) == (0, 0, {})


def test_more_than_its_share_is_refused_and_counted():
    account = Ledger(1000).account("the step before", share=1 / 8)
    assert account.take(1, 125)
    assert not account.take(2, 1)
    assert (account.bytes, account.refused, account.free) == (125, 1, 0)


def test_shares_may_add_up_to_more_than_the_limit_but_what_is_held_may_not():
    ledger = Ledger(1000)
    first, second = ledger.account("a", share=0.75), ledger.account("b", share=0.75)
    assert first.take(1, 700)
    assert not second.take(1, 400)
    assert second.take(1, second.free)
    assert (ledger.bytes, ledger.free, second.refused) == (1000, 0, 1)


def test_the_same_purpose_has_the_same_account():
    ledger = Ledger(1000)
    assert ledger.account("a", share=0.5) is ledger.account("a", share=0.5)


def test_the_sum_never_exceeds_the_limit_whatever_is_asked():
    chance, ledger = random.Random(0), Ledger(10_000)
    accounts = [ledger.account(name, share=share) for name, share in (("a", 0.5), ("b", 0.5), ("c", 0.25), ("d", 1.0))]
    for _ in range(5000):
        account = chance.choice(accounts)
        act = chance.random()
        if act < 0.8:
            account.take(chance.randrange(30), chance.randrange(3000))
        elif act < 0.99:
            account.give_back(chance.randrange(30))
        else:
            account.clear()
        assert 0 <= ledger.bytes <= ledger.limit_bytes
        assert ledger.bytes == sum(size for one in accounts for _, size in one.items())
        assert all(one.bytes <= one.limit_bytes for one in accounts)
    assert all(one.refused for one in accounts)


def test_a_training_that_holds_for_every_reason_at_once_stays_within_memory_mb(tmp_path: Path):
    held: list[int] = []
    reasons: set[str] = set()

    def look(session: Session, step: int, net: Net) -> None:
        held.append(session.ledger.bytes)
        reasons.update(session.ledger.held())

    def ask(session: Session) -> None:
        session.watch("unchanged", on="*:param")
        session.watch("max > 1e30", on="*:output", then="dump")
        take = {why: account.take for why, account in session.ledger.accounts.items()}
        assert {"previous values", "the step under way", "hits that dump", "the step before"} <= set(take)

    limit_mb = 1
    run = trained(tmp_path, steps=4, width=20_000, before=ask, each_step=look, memory_mb=limit_mb, level="op")
    assert max(held) <= limit_mb * MB
    assert reasons & {"previous values", "the step before"}
    warnings = [str(event.facts["text"]) for event in run.events("warning")]
    assert any("no room" in text for text in warnings), warnings


def test_what_is_held_is_what_the_meter_shows(tmp_path: Path):
    shown: list[tuple[int, int]] = []

    def look(session: Session, step: int, net: Net) -> None:
        session.entry.open()
        assert session.controller is not None
        standing = session.controller.standing()
        shown.append((standing.memory_bytes, standing.memory_limit))
        assert standing.memory_bytes == session.ledger.bytes > 0

    trained(tmp_path, steps=2, before=lambda session: session.watch("unchanged", on="*:param"), each_step=look)
    assert shown
