"""Every record survives the way to JSON and back, whatever it holds."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misstep.core.address import ROLES, Address, Pattern
from misstep.core.finding import Finding, TensorFact, Verdict
from misstep.core.graph import Edge, Node, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import TensorStats
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.store.codec import NOT_FINITE, decode, encode, from_json, to_json
from misstep.store.journal import seal, unseal

RECORDS = [Step, RunInfo, Node, Edge, TensorKey, Hit, Watchpoint, Verdict, Finding, TensorFact, TensorStats]

# A field at -0.0 whose default is 0.0 is at its default.
# A string that is the name of a number reads as that number where a field may be either.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda text: text not in NOT_FINITE)
integers = st.integers(-(2**63), 2**63 - 1)
optional_numbers = st.none() | st.integers(0, 10**6)
plain_values = texts | integers | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Anything a field of that type may hold."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Address:
        return st.builds(
            Address,
            texts,
            st.sampled_from(ROLES),
            st.integers(0, 9),
            optional_numbers,
            optional_numbers,
            st.integers(1, 5),
        )
    if kind is Pattern:
        return st.builds(
            Pattern,
            texts,
            st.none() | st.sampled_from(ROLES),
            *[optional_numbers] * 5,
        )
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in dataclasses.fields(kind)})
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(member) for member in inner])
    if origin is tuple:
        return st.lists(values_of(inner[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(texts, values_of(inner[1]), max_size=3)
    known = {
        int: integers,
        float: st.floats().map(lambda value: value + 0.0),
        str: texts,
        bool: st.booleans(),
        type(None): st.none(),
        Any: plain_values,
    }
    return known[kind]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@settings(deadline=None)  # a busy machine is no failure
@given(data=st.data())
def test_a_record_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    record = data.draw(values_of(kind))
    for defaults in (False, True):
        back = decode(kind, from_json(to_json(encode(record, defaults=defaults))))
        assert repr(back) == repr(record)  # NaN is not equal to itself, but it is written alike


@settings(deadline=None)
@given(values_of(Hit))
def test_a_sealed_line_opens_and_is_one_line_of_json(hit: Hit) -> None:
    line = seal({"kind": "hit", "hit": encode(hit)})
    assert line.count(b"\n") == 1
    assert unseal(line[:-1]) == {"kind": "hit", "hit": encode(hit)}
    assert json.loads(line)["kind"] == "hit"


@settings(deadline=None)
@given(values_of(Step), st.data())
def test_a_line_with_any_changed_byte_does_not_open(step: Step, data: st.DataObject) -> None:
    line = bytearray(seal({"kind": "step", "step": encode(step)})[:-1])
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    assert unseal(bytes(line)) is None


def test_fields_at_their_default_are_left_out() -> None:
    assert encode(Step(7, loss=math.nan)) == {"number": 7, "loss": "NaN"}
    assert encode(TensorKey(3, "grad")) == {"node": 3, "role": "grad"}


def test_addresses_and_patterns_are_written_as_users_write_them() -> None:
    assert encode(Address("encoder.0", "grad", step=7)) == "encoder.0:grad@7"
    assert encode(Pattern("encoder.*", "grad")) == "encoder.*:grad"


def test_an_address_whose_node_holds_the_marks_of_an_address_is_written_in_parts() -> None:
    odd = Address("lambda@0x7f:call", step=7)
    assert encode(odd)["node"] == "lambda@0x7f:call"
    assert decode(Address, encode(odd)) == odd


def test_fields_of_a_later_misstep_are_passed_over() -> None:
    assert decode(Step, {"number": 7, "mood": "fine"}) == Step(7)


@pytest.mark.parametrize(
    "plain", [[], "step", {"number": "seven"}, {"number": 1, "loss": "much"}, {}, {"number": 1, "losses": 7}]
)
def test_data_that_does_not_fit_is_refused(plain: Any) -> None:
    with pytest.raises(ValueError):
        decode(Step, plain)


@pytest.mark.parametrize("plain", ["fc:mood@7", "", 7, {"node": "fc", "mood": 1}])
def test_an_address_that_makes_no_sense_is_refused(plain: Any) -> None:
    with pytest.raises(ValueError):
        decode(Address, plain)


def test_numpy_values_and_strangers_become_plain() -> None:
    facts = {"loss": np.float32(0.5), "shape": np.array([2, 3]), "odd": complex(1, 2), 3: {np.int64(4)}}
    assert encode(facts) == {"loss": 0.5, "shape": [2, 3], "odd": "(1+2j)", "3": [4]}


def test_half_of_a_surrogate_pair_does_not_stop_the_journal() -> None:
    assert from_json(to_json({"file": "a\udc80b"})) == {"file": "a?b"}
