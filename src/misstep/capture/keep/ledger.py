"""Who holds how many bytes of which tensor, and why: one book, whose limit is the setting `memory_mb`.

    previous values ─┐
    hits that dump  ─┤   take(tensor, bytes) ──► Ledger ──► yes, or no and counted
    the step before ─┤
    verdicts        ─┤   each holder has an account with a share of its own; together they never exceed the limit
    the live page   ─┘

Whoever is refused does without the tensor and says so. The memory meter of the page shows this book.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator


class Account:
    """What one holder holds, by tensor."""

    def __init__(self, ledger: Ledger, why: str, limit_bytes: int) -> None:
        self.why = why
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.refused = 0
        """Tensors for which there was no room."""
        self._ledger = ledger
        self._held: dict[Hashable, int] = {}

    def take(self, tensor: Hashable, size: int) -> bool:
        """Hold so many bytes of a tensor, instead of what was held of it; False, and counted, without room for them."""
        more = size - self._held.get(tensor, 0)
        if self.bytes + more > self.limit_bytes or more > self._ledger.free:
            self.refused += 1
            return False
        self._held[tensor] = size
        self.bytes += more
        return True

    def give_back(self, tensor: Hashable) -> None:
        self.bytes -= self._held.pop(tensor, 0)

    def clear(self) -> None:
        self._held.clear()
        self.bytes = 0

    @property
    def free(self) -> int:
        """Bytes this holder may still take."""
        return max(0, min(self.limit_bytes - self.bytes, self._ledger.free))

    def items(self) -> Iterator[tuple[Hashable, int]]:
        yield from self._held.items()


class Ledger:
    """The accounts of one process."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.accounts: dict[str, Account] = {}

    def account(self, why: str, *, share: float) -> Account:
        """The account for this purpose, with at most this share of the limit."""
        if why not in self.accounts:
            self.accounts[why] = Account(self, why, int(self.limit_bytes * share))
        return self.accounts[why]

    @property
    def bytes(self) -> int:
        """Held by all of them together: never more than the limit."""
        return sum(account.bytes for account in self.accounts.values())

    @property
    def free(self) -> int:
        return self.limit_bytes - self.bytes

    def held(self) -> dict[str, int]:
        """By purpose, of those who hold something: {'previous values': 1048576}."""
        return {why: account.bytes for why, account in self.accounts.items() if account.bytes}


def ledger_of(memory_mb: float) -> Ledger:
    """The ledger of a process with this setting."""
    return Ledger(int(memory_mb * 2**20))
