"""Damage with an eye for structure: a mutation keeps what a reader checks first (magic, checksum, zip, JSON), so that
it reaches what lies behind.

A mutator is a function of a random generator and a seed; the same generator gives the same damage, so a case is
told by its target and number.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

from misstep.store.foreign import protobuf as pb
from misstep.store.foreign.eventfile import masked
from misstep.store.journal import seal, unseal

Mutator = Callable[[random.Random, bytes], bytes]

NUMBERS = (0, 1, -1, 2, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64)
WORDS = (
    "",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a\0b",
    "\x1b[31m",
    "‮",
    "中文",
    "x" * 300,
    "NaN",
    "-1",
    "nan",
    "[",
)
HOSTILE: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], {"": {}}, 0.5, -0.0, 1e308, "NaN", [1] * 70, [-1], [2**40], {"id": "x"}, *NUMBERS,
    *WORDS,
)  # fmt: skip


def of_bytes(chance: random.Random, seed: bytes) -> bytes:
    """Flip, cut, repeat, insert or overwrite, a few times."""
    data = bytearray(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(7):
            case 0 if data:
                data[at - 1] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[at - 1] = chance.randrange(256)
            case 2:
                del data[at : at + chance.choice((1, 2, 8, 64))]
            case 3:
                data[at:at] = data[max(0, at - chance.choice((1, 4, 32))) : at]
            case 4:
                data[at:at] = chance.randbytes(chance.choice((1, 2, 8)))
            case 5:
                word = struct.pack("<Q", chance.choice(NUMBERS) % 2**64)[: chance.choice((1, 2, 4, 8))]
                data[at : at + len(word)] = word
            case _:
                del data[at:]
    return bytes(data)


def of_places(*places: int) -> Mutator:
    """A file of mostly zeros: only some hundred bytes from these places on are worth damaging."""

    def mutate(chance: random.Random, seed: bytes) -> bytes:
        if chance.random() < 0.1:
            return seed[: chance.choice(places) + chance.randrange(300)]
        at = chance.choice(places)
        piece = of_bytes(chance, seed[at : at + 200])
        return seed[:at] + piece[:200].ljust(200, b"\0") + seed[at + 200 :]

    return mutate


def of_json(chance: random.Random, seed: bytes) -> bytes:
    """A node of the tree replaced, removed, repeated or nested; now and then the bytes themselves."""
    if chance.random() < 0.1:
        return of_bytes(chance, seed)
    text = json.dumps(_twisted(chance, json.loads(seed)), ensure_ascii=chance.random() < 0.5)
    return text.replace(f'"{_DEEP}"', "[" * 3000 + "]" * 3000).encode("utf-8", "replace")


_DEEP = "nested three thousand times"


def _twisted(chance: random.Random, tree: Any) -> Any:
    """The tree with one of its nodes, at a random depth, made strange."""
    if isinstance(tree, dict | list) and tree and chance.random() < 0.8:
        key = chance.choice(list(tree)) if isinstance(tree, dict) else chance.randrange(len(tree))
        copied = dict(tree) if isinstance(tree, dict) else list(tree)
        if chance.random() < 0.15:
            del copied[key]
        elif isinstance(copied, dict) and chance.random() < 0.1:
            copied[chance.choice(WORDS)] = copied.pop(key)
        else:
            copied[key] = _twisted(chance, copied[key])
        return copied
    if chance.random() < 0.02:
        return _DEEP
    return chance.choice(HOSTILE)


def of_sealed_lines(chance: random.Random, seed: bytes) -> bytes:
    """Lines of a journal or graph whose checksums are right again after the damage."""
    if chance.random() < 0.2:
        return of_bytes(chance, seed)
    lines = seed.splitlines()
    at = chance.randrange(len(lines))
    plain = unseal(lines[at])
    if plain is not None:
        twisted = _twisted(chance, {key: value for key, value in plain.items() if key != "crc"})
        if isinstance(twisted, dict) and twisted:
            lines[at] = json.dumps(twisted).encode()
            try:
                lines[at] = seal(twisted).rstrip(b"\n")
            except (OverflowError, RecursionError, ValueError):
                pass
    if chance.random() < 0.2:
        chance.shuffle(lines)
    return b"\n".join(lines) + b"\n"


def of_protobuf(chance: random.Random, seed: bytes) -> bytes:
    """One field at some depth changed, with all lengths around it right."""
    if chance.random() < 0.3:
        return of_bytes(chance, seed)
    return _message(chance, seed, 0)


def _message(chance: random.Random, data: bytes, depth: int) -> bytes:
    try:
        fields = list(pb.fields(data))
    except pb.Malformed:
        return of_bytes(chance, data)
    if not fields:
        return chance.randbytes(4)
    changed = chance.randrange(len(fields))
    made = b""
    for number, field in enumerate(fields):
        kind, content = field.kind, data[field.value : field.end] if field.kind == pb.BYTES else b""
        tag = field.number
        if number == changed:
            match chance.randrange(5):
                case 0:
                    continue
                case 1:
                    tag = chance.choice((1, 2, 3, 4, 5, 8, 9, 15, 500))
                case 2:
                    kind = pb.VARINT
                case _ if kind == pb.BYTES and depth < 6:
                    content = _message(chance, content, depth + 1)
                case _:
                    field = field._replace(value=chance.choice(NUMBERS) % 2**64)
        if kind == pb.BYTES:
            made += pb.encode_bytes(tag, content)
        elif kind == pb.VARINT:
            made += pb.encode_number(tag, field.value)
        else:
            width = 8 if kind == pb.FIXED64 else 4
            made += pb.encode_varint(tag << 3 | kind) + (field.value % 2 ** (8 * width)).to_bytes(width, "little")
    return made


def of_events(chance: random.Random, seed: bytes) -> bytes:
    """Records of an event file, each with the right checksums; small ones, as they are computed in Python."""
    if chance.random() < 0.3:
        return of_bytes(chance, seed)
    made, at = b"", 0
    while at + 12 <= len(seed):
        (length,) = struct.unpack_from("<Q", seed, at)
        body = seed[at + 12 : at + 12 + length]
        at += length + 16
        if chance.random() < 0.6:
            body = of_protobuf(chance, body)
        head = struct.pack("<Q", len(body))
        made += head + struct.pack("<I", masked(head)) + body + struct.pack("<I", masked(body))
    return made


def of_zip(inner: Callable[[str], Mutator]) -> Mutator:
    """One member changed by the mutator of its name, and packed again: the checksums of the zip are right."""

    def mutate(chance: random.Random, seed: bytes) -> bytes:
        if chance.random() < 0.2:
            return of_bytes(chance, seed)
        with zipfile.ZipFile(io.BytesIO(seed)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = chance.choice(list(members))
        members[name] = inner(name)(chance, members[name])
        if chance.random() < 0.05:
            members[chance.choice(("../out", "/out", name + "/..", "x" * 200, "\x1b[31m"))] = members.pop(name)
        out = io.BytesIO()
        with zipfile.ZipFile(
            out, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        ) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return out.getvalue()

    return mutate


_PICKLED = (
    b"(", b".", b"0", b"1", b"2", b"N", b"]", b"}", b")", b"a", b"e", b"s", b"u", b"t", b"l", b"d", b"R", b"b", b"o",
    b"\x81", b"\x85", b"\x86", b"\x87", b"\x90", b"\x91", b"\x92", b"\x93", b"\x94", b"q\x00", b"h\x00", b"h\x01",
    b"Q", b"K\x05", b"J\xff\xff\xff\xff", b"r\xff\xff\xff\x7f", b"\x8a\x09" + b"\x7f" * 9, b"X\x01\x00\x00\x00a",
    b"ctorch\nSize\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"ccollections\nOrderedDict\n", b"cnumpy\ndtype\n",
    b"cos\nsystem\n", b"cargparse\nNamespace\n", b"c_codecs\nencode\n", b"cbuiltins\nbytearray\n", b"\x80\x04",
    b"\x95\xff\xff\xff\xff\xff\xff\xff\xff",
)  # fmt: skip


def of_pickle(chance: random.Random, seed: bytes) -> bytes:
    """Operations put in, taken out and moved."""
    data = bytearray(seed)
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        at = chance.randrange(len(data) + 1)
        if chance.random() < 0.6:
            data[at:at] = chance.choice(_PICKLED) * chance.choice((1, 1, 1, 2, 50))
        else:
            data[:] = of_bytes(chance, bytes(data))
    return bytes(data)


def of_header(inner: Mutator) -> Mutator:
    """safetensors: the header changed, its length right again."""

    def mutate(chance: random.Random, seed: bytes) -> bytes:
        if chance.random() < 0.3:
            return of_bytes(chance, seed)
        (length,) = struct.unpack_from("<Q", seed)
        header = inner(chance, seed[8 : 8 + length])
        return struct.pack("<Q", len(header)) + header + seed[8 + length :]

    return mutate


def of_npy(chance: random.Random, seed: bytes) -> bytes:
    """The header's text changed by words, its length right again."""
    if chance.random() < 0.3:
        return of_bytes(chance, seed)
    (length,) = struct.unpack_from("<H", seed, 8)
    text = of_words(chance, seed[10 : 10 + length])
    return seed[:8] + struct.pack("<H", len(text) % 65536) + text + seed[10 + length :]


_TOKENS = (
    "(", ")", "[", "]", "{", "}", ",", ":", ".", "..", "...", "@", "#", "~", "*", "?", "!", "=", "==", "<", ">=", "!=",
    "+", "-", "/", "and", "or", "not", "on", "then", "if", "every", "step", "abs(", "nan", "inf", "1e999", "-1", "0",
    "9" * 30, "1e-3", "'", '"', "\\", "\n", "\t", " ", "\0", "\x1b", "中", "‮", "|O", "<f4", "(-1,)", "True", "None",
    "${", "}}", "&a", "*a", "<<:", "- ",
)  # fmt: skip


def of_words(chance: random.Random, seed: bytes) -> bytes:
    """A sentence of some grammar with words of grammars put in, taken out, repeated."""
    text = seed.decode("utf-8", "replace")
    for _ in range(chance.choice((1, 1, 2, 3, 5))):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(5):
            case 0:
                text = text[:at] + chance.choice(_TOKENS) * chance.choice((1, 1, 1, 3, 100)) + text[at:]
            case 1:
                text = text[:at] + text[at + chance.choice((1, 2, 5, 20)) :]
            case 2:
                text = (
                    text[:at]
                    + text[max(0, at - chance.choice((1, 3, 10))) : at] * chance.choice((1, 2, 40))
                    + text[at:]
                )
            case 3:
                text = (
                    text[:at] + chr(chance.choice((chance.randrange(128), chance.randrange(0x3000)))) + text[at + 1 :]
                )
            case _:
                text = text[:at] + chance.choice(_TOKENS) + text[at + 1 :]
    return text.encode("utf-8", "replace")
