"""Addresses of machine code are told by library and function."""

from __future__ import annotations

import ctypes
from pathlib import Path

from misstep.store.bundle.machinecode import demangled, in_words, read_map, with_functions


def address_of(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def test_an_address_is_told_by_library_and_function() -> None:
    text = Path("/proc/self/maps").read_text()
    inside, caller = address_of("PyList_New") + 4, address_of("PyDict_New") + 5
    first, second, third = in_words([inside, caller, 0x10], read_map(text))
    assert first.endswith("PyList_New+0x4")
    assert second.endswith("PyDict_New+0x4")  # a return address belongs to the call before it
    assert third == "0x10"
    told = with_functions(f"machine code of thread 7 at signal 11\n{inside:#x}\nmap\n{text}")
    assert told == f"machine code of thread 7 at signal 11\n  {first}\n"


def test_a_text_of_another_kind_stays_as_it_is() -> None:
    assert with_functions("Fatal Python error: Aborted\n") == "Fatal Python error: Aborted\n"


def test_names_of_cpp_are_told_as_they_were_written() -> None:
    assert demangled("_ZN4c10d4Work4waitEv") == "c10d::Work::wait()"
    assert demangled("PyList_New") == "PyList_New"
