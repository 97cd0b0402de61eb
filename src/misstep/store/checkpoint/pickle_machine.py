"""The little machine that a pickle is a program for, with our own hands on every operation.

Python's own would let a file reserve gigabytes by naming a memo slot, nest tuples until hashing them overruns the C
stack, or set attributes on the classes it was lent, and so change how the next file is read. Here operations and bytes
made are counted, keys are names and numbers, and only records made while reading this file can be changed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from misstep.store.boundary import Damaged, TooMuch

MOST_OPERATIONS = 3_000_000
"""A checkpoint of ten thousand tensors takes some three hundred thousand."""
_MADE_AT_LEAST = 16 << 20
"""Bytes and slots that calls may make beyond what the file itself holds."""
_TEXT_LINE = 1 << 16

_PLAIN_KEYS = (str, int, float, bool, bytes, type(None))


class Buildable:
    """A record that a pickle may hand a state to; nothing else can be changed by one."""

    __slots__ = ()

    def take_state(self, state: Any) -> None:
        """Most have nothing to learn: attributes a user hung on a tensor are of no interest."""


class Namer(Protocol):
    """What names and persistent references in a pickle stand for."""

    def find(self, module: str, name: str) -> Any: ...

    def persistent(self, saved: Any) -> Any: ...


class Machine:
    """One pickle, from `at` on, to its end."""

    def __init__(self, data: bytes | memoryview, namer: Namer, *, at: int = 0) -> None:
        self._data, self._end = data, len(data)
        self._namer = namer
        self.at = at
        self._began = at
        self._memo: dict[int, Any] = {}
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._made = 0

    def run(self) -> Any:
        """What the program leaves on the stack; `at` is then one past its end."""
        begun = 0
        try:
            for _ in range(MOST_OPERATIONS):
                begun = self.at
                code = self._data[begun]
                self.at = begun + 1
                if code == _STOP:
                    return self._stack.pop()
                _OPERATIONS[code](self)
        except Damaged as wrong:
            wrong.offset = begun if wrong.offset is None else wrong.offset
            raise
        except KeyError:
            raise Damaged("an operation of a pickle, or a memo slot that was filled", offset=begun) from None
        except IndexError:
            raise Damaged("more of the pickle", offset=min(begun, self._end)) from None
        except (TypeError, ValueError, AttributeError, OverflowError, struct.error, RecursionError) as wrong:
            raise Damaged(f"arguments that fit ({type(wrong).__name__}: {str(wrong)[:120]})", offset=begun) from None
        raise TooMuch(
            f"at most {MOST_OPERATIONS:,} operations in a pickle; save tensors instead of lists", offset=begun
        )

    # ── the bytes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, count: int) -> bytes:
        begin, stop = self.at, self.at + count
        if count < 0 or stop > self._end:
            raise Damaged(f"{count:,} more bytes, there are {self._end - begin:,}", offset=begin)
        self.at = stop
        return bytes(self._data[begin:stop])

    def skip(self, count: int) -> None:
        self.take(count)

    def number(self, layout: struct.Struct) -> Any:
        return layout.unpack(self.take(layout.size))[0]

    def line(self) -> bytes:
        piece = bytes(self._data[self.at : self.at + _TEXT_LINE])
        cut = piece.find(b"\n")
        if cut < 0:
            raise Damaged("the end of a line", offset=self.at)
        self.at += cut + 1
        return piece[:cut]

    # ── the stack ────────────────────────────────────────────────────────────────────────────────────────────────────

    def push(self, thing: Any) -> None:
        self._stack.append(thing)

    def pop(self) -> Any:
        return self._stack.pop()

    @property
    def top(self) -> Any:
        return self._stack[-1]

    def mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def since_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def drop_to_mark(self) -> None:
        self.since_mark()

    def keep(self, slot: int) -> None:
        if not 0 <= slot <= self.at - self._began:  # slots are counted up; no more are filled than bytes were read
            raise Damaged(f"a memo slot up to {self.at - self._began:,}, found {slot:,}")
        self._memo[slot] = self._stack[-1]

    def keep_next(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def fetch(self, slot: int) -> None:
        self._stack.append(self._memo[slot])

    # ── what is made ─────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, function: Any, given: Any, named: Mapping[str, Any] | None = None) -> None:
        if type(given) is not tuple or not callable(function):
            raise Damaged("something to call, and its arguments")
        made = function(*given, **(named or {}))
        if isinstance(made, str | bytes | list | tuple | dict):
            # A call that copies a long text costs three bytes in the file; the same text can be copied again and again.
            self._made += len(made)
            if self._made > _MADE_AT_LEAST + 4 * (self._end - self._began):
                raise TooMuch("calls that make no more than the file holds")
        self.push(made)

    def name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str or len(module) + len(name) > 1000:
            raise Damaged("the name of a class or function")
        self.push(self._namer.find(module, name))

    def refer(self, saved: Any) -> None:
        self.push(self._namer.persistent(saved))

    def build(self) -> None:
        state, thing = self.pop(), self.top
        if isinstance(thing, Buildable):
            thing.take_state(state)
        elif not isinstance(thing, dict):
            raise Damaged("a record that takes a state")

    def set_items(self, items: list[Any]) -> None:
        table = self.top
        if not isinstance(table, dict) or len(items) % 2:
            raise Damaged("a table, and pairs for it")
        for key, value in zip(items[::2], items[1::2]):
            table[_as_key(key)] = value

    def append(self, items: list[Any]) -> None:
        row = self.top
        if type(row) is not list:
            raise Damaged("a list to append to")
        row.extend(items)

    def table(self, items: list[Any]) -> None:
        self.push({})
        self.set_items(items)


def _as_key(key: Any) -> Any:
    """Hashing a tuple goes as deep as the tuple does, on the C stack: names, numbers and flat rows of them."""
    if isinstance(key, (*_PLAIN_KEYS, Buildable)):
        return key
    if type(key) is tuple and all(isinstance(part, _PLAIN_KEYS) for part in key):
        return key
    raise Damaged(f"a name or a number as a key, found a {type(key).__name__}")


def _text_int(line: bytes) -> int | bool:
    return line == b"01" if line in (b"00", b"01") else int(line)


def _quoted(line: bytes) -> str:
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b'"', b"'"):
        raise Damaged("a quoted text")
    return line[1:-1].decode("unicode_escape")


def _tuple(machine: Machine, count: int) -> None:
    parts = tuple(reversed([machine.pop() for _ in range(count)]))
    machine.push(parts)


def _pop_or_unmark(machine: Machine) -> None:
    if machine._stack:
        machine.pop()
    else:
        machine.since_mark()


def _reduce(machine: Machine) -> None:
    given, function = machine.pop(), machine.pop()
    machine.call(function, given)


def _new_with_names(machine: Machine) -> None:
    named, given, kind = machine.pop(), machine.pop(), machine.pop()
    if type(named) is not dict:
        raise Damaged("named arguments")
    machine.call(kind, given, named)


def _instance(machine: Machine) -> None:
    module, name = machine.line().decode(), machine.line().decode()
    given = tuple(machine.since_mark())
    machine.name(module, name)
    machine.call(machine.pop(), given)


def _object(machine: Machine) -> None:
    kind, *given = machine.since_mark()
    machine.call(kind, tuple(given))


def _stack_name(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    machine.name(module, name)


def _set_item(machine: Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


def _append_one(machine: Machine) -> None:
    item = machine.pop()
    machine.append([item])


def _global(machine: Machine) -> None:
    machine.name(machine.line().decode(), machine.line().decode())


def _long(machine: Machine, layout: struct.Struct) -> None:
    machine.push(int.from_bytes(machine.take(machine.number(layout)), "little", signed=True))


def _add_items(machine: Machine) -> None:
    items = machine.since_mark()
    machine.append(items)


_STOP = ord(".")
_BYTE, _PAIR, _WORD, _SIGNED, _LONG = (struct.Struct(mark) for mark in ("<B", "<H", "<I", "<i", "<Q"))
_DOUBLE = struct.Struct(">d")


def _bytes_of(layout: struct.Struct) -> Callable[[Machine], None]:
    return lambda machine: machine.push(machine.take(machine.number(layout)))


def _words_of(
    layout: struct.Struct, encoding: str = "utf-8", errors: str = "surrogatepass"
) -> Callable[[Machine], None]:
    return lambda machine: machine.push(machine.take(machine.number(layout)).decode(encoding, errors))


def _constant(make: Callable[[], Any]) -> Callable[[Machine], None]:
    return lambda machine: machine.push(make())


def _number_of(layout: struct.Struct) -> Callable[[Machine], None]:
    return lambda machine: machine.push(machine.number(layout))


_BY_MARK: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": lambda machine: machine.skip(1),  # the protocol's number
    b"\x95": lambda machine: machine.skip(8),  # the length of a frame
    b"(": Machine.mark,
    b"0": _pop_or_unmark,
    b"1": Machine.drop_to_mark,
    b"2": lambda machine: machine.push(machine.top),
    b"N": _constant(lambda: None),
    b"\x88": _constant(lambda: True),
    b"\x89": _constant(lambda: False),
    b"I": lambda machine: machine.push(_text_int(machine.line())),
    b"L": lambda machine: machine.push(int(machine.line().rstrip(b"L"))),
    b"F": lambda machine: machine.push(float(machine.line())),
    b"J": _number_of(_SIGNED),
    b"K": _number_of(_BYTE),
    b"M": _number_of(_PAIR),
    b"G": _number_of(_DOUBLE),
    b"\x8a": lambda machine: _long(machine, _BYTE),
    b"\x8b": lambda machine: _long(machine, _SIGNED),
    b"S": lambda machine: machine.push(_quoted(machine.line())),
    b"V": lambda machine: machine.push(machine.line().decode("raw_unicode_escape")),
    b"T": _words_of(_SIGNED, "latin1", "strict"),
    b"U": _words_of(_BYTE, "latin1", "strict"),
    b"X": _words_of(_WORD),
    b"\x8c": _words_of(_BYTE),
    b"\x8d": _words_of(_LONG),
    b"B": _bytes_of(_WORD),
    b"C": _bytes_of(_BYTE),
    b"\x8e": _bytes_of(_LONG),
    b"\x96": _bytes_of(_LONG),
    b"]": _constant(list),
    b"}": _constant(dict),
    b")": _constant(tuple),
    b"\x8f": _constant(list),  # a set, as a row: its items are never hashed
    b"l": lambda machine: machine.push(machine.since_mark()),
    b"t": lambda machine: machine.push(tuple(machine.since_mark())),
    b"d": lambda machine: machine.table(machine.since_mark()),
    b"\x91": lambda machine: machine.push(machine.since_mark()),
    b"\x85": lambda machine: _tuple(machine, 1),
    b"\x86": lambda machine: _tuple(machine, 2),
    b"\x87": lambda machine: _tuple(machine, 3),
    b"a": _append_one,
    b"e": _add_items,
    b"\x90": _add_items,
    b"s": _set_item,
    b"u": lambda machine: machine.set_items(machine.since_mark()),
    b"p": lambda machine: machine.keep(int(machine.line())),
    b"q": lambda machine: machine.keep(machine.number(_BYTE)),
    b"r": lambda machine: machine.keep(machine.number(_WORD)),
    b"\x94": Machine.keep_next,
    b"g": lambda machine: machine.fetch(int(machine.line())),
    b"h": lambda machine: machine.fetch(machine.number(_BYTE)),
    b"j": lambda machine: machine.fetch(machine.number(_WORD)),
    b"c": _global,
    b"\x93": _stack_name,
    b"P": lambda machine: machine.refer(machine.line().decode()),
    b"Q": lambda machine: machine.refer(machine.pop()),
    b"R": _reduce,
    b"\x81": _reduce,
    b"\x92": _new_with_names,
    b"i": _instance,
    b"o": _object,
    b"b": Machine.build,
}
_OPERATIONS: Mapping[int, Callable[[Machine], None]] = MappingProxyType({mark[0]: do for mark, do in _BY_MARK.items()})
