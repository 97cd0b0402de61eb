"""No secret leaves with a flight record, and nothing that a debugger needs is taken for one."""

from __future__ import annotations

import pytest

from core.secret_shapes import HARMLESS, KEYS, NAMED, A, H, P
from misstep.core.secrets import Scrubber, allowed, is_secret_name


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "db_password", "AWS_SECRET_ACCESS_KEY", "client-secret", "SSH_AUTH"]
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["PWD", "tokens", "key", "keys", "tokenizer", "keyboard", "monkey", "x", "hidden"])
def test_names_that_networks_are_full_of_are_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "signed in with correct-horse",
        "--api-key=0123456789abcdef",
        "--token 0123456789abcdef",
        "Authorization: Bearer 0123456789abcdef",
        "https://me:0123456789abcdef@host/",
        "hf_0123456789abcdefghij",
        '{"password": "0123456789abcdef"}',
    ],
)
def test_secrets_are_taken_out_of_texts(text: str) -> None:
    clean = Scrubber({"DB_PASSWORD": "correct-horse"}).text(text)
    assert "(hidden)" in clean
    assert "correct-horse" not in clean
    assert "0123456789abcdef" not in clean


@pytest.mark.parametrize(
    "text",
    [
        "the token embedding is too small",
        "tokens = float32 [8, 128]",
        "key: tensor([1, 2])",
        "KeyError: 'labels'",
        "loss 0.31 at step 12",
    ],
)
def test_what_a_debugger_is_for_stays(text: str) -> None:
    assert Scrubber({}).text(text) == text


def test_of_the_environment_only_the_allowed_is_told() -> None:
    assert allowed({"RANK": "1", "MY_SETTING": "x", "HF_TOKEN": "y"}) == {"RANK": "1"}


def test_members_named_like_secrets_are_hidden_in_data() -> None:
    data = {"api_key": "abcdefgh", "tokens": [1, 2], "deep": [{"password": "x"}]}
    assert Scrubber({}).plain(data) == {"api_key": "(hidden)", "tokens": [1, 2], "deep": [{"password": "(hidden)"}]}


@pytest.mark.parametrize("text", KEYS + NAMED)
def test_none_of_a_hundred_shapes_is_left(text: str) -> None:
    clean = Scrubber({}).text(f"step 3: {text} (see log)")
    assert not [secret for secret in (A, H, P, "IOSFODNN7EXAMPLE", "0a1b2c3d0a1b") if secret in clean], clean


@pytest.mark.parametrize("text", HARMLESS)
def test_what_looks_a_little_like_a_secret_stays(text: str) -> None:
    assert Scrubber({}).text(text) == text


def test_there_are_a_hundred_shapes() -> None:
    assert len({*KEYS, *NAMED}) >= 100


def test_the_word_behind_an_option_is_hidden_in_a_command_line() -> None:
    given = ["python", "train.py", "--token", P, "-p", P, "--lr", "0.1", "-p", "8080", "--api-key", "abc"]
    assert Scrubber({}).plain(given) == [
        *("python", "train.py", "--token", "(hidden)", "-p", "(hidden)"),
        *("--lr", "0.1", "-p", "8080", "--api-key", "(hidden)"),
    ]


def test_a_users_own_list_of_names_counts() -> None:
    scrub = Scrubber({"CORP_PIN": "98-76-54"}, names=["corp_*", "badge"])
    assert (
        scrub.text("pin 98-76-54, --badge=A17 and badge: B18") == "pin (hidden), --badge=(hidden) and badge: (hidden)"
    )
    assert scrub.plain({"badge": ["x"], "corp_id": {"a": "y", "n": 3}}) == {
        "badge": ["(hidden)"],
        "corp_id": {"a": "(hidden)", "n": 3},
    }


@pytest.mark.parametrize("piece", ["token", "a", "key-", "://", "-", "auth.", "=", "bearer ", "\n", "mysql -"])
def test_long_texts_are_read_in_a_moment(piece: str) -> None:
    Scrubber({}, names=["corp_*"]).text(piece * (60_000 // len(piece)) + " token")
