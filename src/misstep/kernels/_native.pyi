import numpy as np
from numpy.typing import NDArray

from misstep.kernels.records import Buffer, Integers, Table

def summarize_memory(address: int, count: int, dtype: int, out: Table, row: int, /) -> None: ...
def summarize_strided(
    address: int, shape: Integers, strides: Integers, dtype: int, out: Table, row: int, /
) -> None: ...
def summarize_many(
    addresses: Integers, counts: Integers, dtypes: Integers | int, out: Table, first_row: int = 0, /
) -> None: ...
def nonfinite_many(addresses: Integers, counts: Integers, dtypes: Integers | int, /) -> bytearray: ...
def digest(address: int, nbytes: int, /) -> int: ...
def digest_bytes(buffer: Buffer, /) -> int: ...
def digest_many(addresses: Integers, nbytes: Integers, /) -> list[int]: ...
def change_memory(
    now: int,
    before: int,
    count: int,
    dtype: int,
    rtol: float,
    atol: float,
    out: Table,
    row: int,
    equal_nan: bool = False,
    /,
) -> None: ...
def compare_memory(
    a: int,
    dtype_a: int,
    b: int,
    dtype_b: int,
    count: int,
    rtol: float,
    atol: float,
    out: Table,
    row: int,
    /,
) -> None: ...
def exponents_memory(address: int, count: int, dtype: int, bins: NDArray[np.int64], /) -> None: ...
def finish_rows(
    tensors: list[int],
    shapes: list[int],
    dtypes: list[int],
    inputs: list[tuple[int, ...] | None],
    aliases: dict[int, int],
    step: int,
    head: Table,
    summary: Table,
    /,
) -> int: ...
def first_bad(summary: Table, count: int, /) -> int: ...
def seal_rows(head: Table, summary: Table, out: Table, count: int, /) -> None: ...
def step_line(
    number: int,
    time: float,
    loss: float | None,
    seconds: float,
    rate: float | None,
    overhead: float,
    level: int,
    optimizer: str,
    rows: int,
    norm: float | None,
    /,
) -> bytes: ...
def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def use(name: str, /) -> None: ...
