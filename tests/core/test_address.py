"""Addresses and patterns: one way to write every tensor's name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misstep.core.address import ROLES, Address, Pattern
from misstep.errors import AddressError

WHOLE = Address("encoder.0.attn", "output", slot=1, step=120, rank=3, call=2)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("encoder.0.attn~2:output.1@120#3", WHOLE),
        ("fc", Address("fc")),
        ("fc@7", Address("fc", step=7)),
        ("fc.weight:param@0", Address("fc.weight", "param", step=0)),
        ("encoder.0/log:output", Address("encoder.0/log")),
        ("loss:loss#0", Address("loss", "loss", rank=0)),
        ("  fc:grad_input  ", Address("fc", "grad_input")),
        ("层.0:output", Address("层.0")),
    ],
)
def test_an_address_is_read(text: str, address: Address) -> None:
    assert Address.parse(text) == address


def test_the_shortest_writing_leaves_out_the_first_call_and_slot() -> None:
    assert str(Address("fc", "output", slot=0, call=1)) == "fc:output"
    assert str(WHOLE) == "encoder.0.attn~2:output.1@120#3"


nodes = st.text(st.characters(exclude_characters=":@#~*?[", exclude_categories=["Z", "C"]), min_size=1, max_size=12)
numbers = st.integers(0, 10**9)
addresses = st.builds(
    Address,
    node=nodes,
    role=st.sampled_from(ROLES),
    slot=numbers,
    step=st.none() | numbers,
    rank=st.none() | numbers,
    call=st.integers(1, 10**6),
)


@given(addresses)
def test_a_written_address_is_read_back(address: Address) -> None:
    assert Address.parse(str(address)) == address
    assert Pattern.parse(str(address)).matches(address)


@given(st.text(max_size=40))
def test_any_text_is_an_address_a_pattern_or_an_address_error(text: str) -> None:
    for read in (Address.parse, Pattern.parse):
        try:
            again = read(text)
        except AddressError:
            continue
        assert read(str(again)) == again


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot read the address ''"),
        (":output", "names no node"),
        ("fc:ouput", "unknown role 'ouput' in 'fc:ouput'; roles are input, output.*did you mean output"),
        ("fc:output.x", "the slot in 'fc:output.x' is 'x', not a number"),
        ("fc@last", "the step in 'fc@last' is 'last', not a number"),
        ("fc#a", "the rank in 'fc#a' is 'a', not a number"),
        ("fc~b", "the call in 'fc~b' is 'b', not a number"),
        ("fc@1:2", "the step in 'fc@1:2' is '1:2', not a number"),
        ("fc.*", "is a pattern; here one tensor must be named"),
        ("fc~0:output", "the call in 'fc~0:output' is 0; calls count from 1"),
        ("fc@²", "not a number"),
    ],
)
def test_an_address_that_cannot_be_read_names_the_part(text: str, words: str) -> None:
    with pytest.raises(AddressError, match=words):
        Address.parse(text)


def test_at_moves_an_address_in_time_and_rank() -> None:
    assert WHOLE.at(step=5) == Address("encoder.0.attn", "output", 1, 5, 3, 2)
    assert WHOLE.at(rank=0).rank == 0
    assert WHOLE.at() == WHOLE


@pytest.mark.parametrize(
    ("pattern", "address", "matches"),
    [
        ("encoder.*:grad", "encoder.0.fc:grad@7", True),
        ("encoder.*:grad", "encoder.0.fc:output", False),
        ("encoder.*", "encoder", False),
        ("*", "a/b.c:loss@3#1", True),
        ("*/log:output@100:200", "a.b/log:output@150", True),
        ("*/log:output@100:200", "a.b/log:output@201", False),
        ("*@:5", "a:output@6", False),
        ("*@5:", "a:output@5", True),
        ("a@5", "a:output", True),
        ("a#1", "a:output#0", False),
        ("a#1", "a:output", True),
        ("a:output.1", "a:output", False),
        ("a:*.1", "a:grad.1", True),
        ("a~2", "a:output", False),
        ("a~2", "a~2:output", True),
        ("layer.?", "layer.1:output", True),
        ("layer.?", "layer.10:output", False),
        ("layer.[0-2]", "layer.2:output", True),
        ("layer.[!0-2]", "layer.2:output", False),
        ("layer.[!0-2]", "layer.7:output", True),
        ("a.b", "aXb:output", False),
        ("a[", "a[:output", True),
        (":grad", "anything:grad", True),
    ],
)
def test_a_pattern_matches_what_its_parts_say(pattern: str, address: str, matches: bool) -> None:
    node, _, rest = address.partition(":")
    named = Address(node, "output") if "[" in node else Address.parse(f"{node}:{rest}")

    assert Pattern.parse(pattern).matches(named) is matches


@pytest.mark.parametrize(
    "text", ["*", "encoder.*:grad", "*/log:output@100:200", "a:*.1", "a~2:output.0@:5#1", "a@3", "a@3:", "[!a]*"]
)
def test_a_pattern_is_written_as_it_was_read(text: str) -> None:
    assert str(Pattern.parse(text)) == text


@pytest.mark.parametrize("text", ["[z-a]", "[]", "[!]", "[[]", "[^a]", "[a\\]", "[a&&b]"])
def test_strange_brackets_are_a_pattern_or_an_error_but_never_a_crash(text: str) -> None:
    try:
        matches = Pattern.parse(text).matches(Address("a"))
    except AddressError:
        assert text in ("[z-a]",)
    else:
        assert matches is (text in ("[^a]", "[a\\]", "[a&&b]"))


def test_a_caret_in_brackets_is_a_letter() -> None:
    assert Pattern.parse("[^a]").matches(Address("a"))
    assert Pattern.parse("[^a]").matches(Address("^"))


def test_an_empty_step_range_is_refused() -> None:
    with pytest.raises(AddressError, match="ends at 3, before it starts at 5"):
        Pattern.parse("a@5:3")
