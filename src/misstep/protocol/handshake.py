"""Two who share a token make sure of each other before anything is said, and without saying it.

    trainee ─► hub       mark · nonce of the trainee
    hub ─► trainee       nonce of the hub · HMAC(token, "hub" · both nonces)
    trainee ─► hub       HMAC(token, "trainee" · both nonces)

Whoever listens on the hub's port without knowing the token learns neither it nor the run, and gives no orders. The
nonces are fresh, so that what was overheard once is worth nothing; the roles differ, so that it cannot be sent back.
"""

from __future__ import annotations

import hmac
import secrets

MARK = b"MSTPLNK2"
NONCE_BYTES = PROOF_BYTES = 32
HELLO_BYTES = len(MARK) + NONCE_BYTES
ANSWER_BYTES = NONCE_BYTES + PROOF_BYTES


def nonce() -> bytes:
    return secrets.token_bytes(NONCE_BYTES)


def proof(token: str, role: str, asked: bytes, own: bytes) -> bytes:
    """What only who knows the token can say to that nonce."""
    return hmac.digest(token.encode("utf-8", "surrogatepass"), role.encode() + b"\0" + asked + own, "sha256")


class Caller:
    """The trainee's part."""

    def __init__(self, token: str) -> None:
        self._token, self._nonce = token, nonce()

    @property
    def hello(self) -> bytes:
        return MARK + self._nonce

    def reply(self, answer: bytes) -> bytes | None:
        """Our proof, once the other side has given its own; None when it has not, and nothing more is to be said."""
        if len(answer) != ANSWER_BYTES or not self._token:
            return None
        theirs, given = answer[:NONCE_BYTES], answer[NONCE_BYTES:]
        if not hmac.compare_digest(given, proof(self._token, "hub", self._nonce, theirs)):
            return None
        return proof(self._token, "trainee", theirs, self._nonce)


class Callee:
    """The hub's part."""

    def __init__(self, token: str) -> None:
        self._token, self._nonce = token, nonce()
        self._asked = b""

    def answer(self, hello: bytes) -> bytes | None:
        """Our nonce and proof; None for who does not begin as a trainee does."""
        if len(hello) != HELLO_BYTES or not hello.startswith(MARK) or not self._token:
            return None
        self._asked = hello[len(MARK) :]
        return self._nonce + proof(self._token, "hub", self._asked, self._nonce)

    def admits(self, given: bytes) -> bool:
        return hmac.compare_digest(given, proof(self._token, "trainee", self._nonce, self._asked))
