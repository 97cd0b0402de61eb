"""Values of tensors: from the process that trains while it has them, else from the run directory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import ml_dtypes
import msgspec
import numpy as np

from misstep.core.address import Address
from misstep.core.slices import Array, parse_slice
from misstep.errors import AddressError, ControlError, RunError, TensorUnavailable
from misstep.protocol.tensor_payloads import CompareMode, ComparisonHeader, TensorHeader
from misstep.protocol.window import look, side_by_side
from misstep.protocol.wire import AskTensor
from misstep.store.reading.reader import Run

if TYPE_CHECKING:
    from misstep.hub.hub import Hub


async def tensor(
    hub: Hub, name: str, address: str, *, slice: str, want: tuple[str, ...], previous: bool = False
) -> tuple[TensorHeader, bytes | memoryview]:
    """A tensor through a window: live when its process has it, else from the pack."""
    wanted = Address.parse(address)
    live = hub.live.get(name)
    refused: TensorUnavailable | None = None
    if live is not None and live.ranks:
        try:
            result, data = await live.tensor(AskTensor("", address, slice, want, previous), rank=wanted.rank)
            return msgspec.convert(result, TensorHeader), data
        except ControlError as error:
            if error.code != "unavailable" and error.code != "not_found":
                raise
            params: dict[str, Any] = getattr(error, "params", {})
            reason = "other_rank" if error.code == "not_found" else str(params.get("reason", "unknown"))
            refused = TensorUnavailable(str(error), address=address, reason=reason)
    try:
        run = hub.reader(name)
        if previous:
            wanted = _one_before(run, wanted)
        array = await asyncio.to_thread(run.tensor, wanted)
    except (RunError, TensorUnavailable) as error:
        raise refused or error from None
    except AddressError as error:
        # Only the training knows why an operator nobody has recorded is not there, and how to get it.
        raise refused if refused is not None and "/" in wanted.node else error from None
    return await asyncio.to_thread(
        look,
        array,
        address=str(wanted),
        slice=slice,
        want=want,
        origin="stored",
        step=wanted.step,
        rank=wanted.rank or 0,
    )


async def array(hub: Hub, name: str, address: str, *, slice: str, previous: bool = False) -> tuple[str, Array]:
    """A whole slice as an array, wherever it comes from; its full address too."""
    header, data = await tensor(hub, name, address, slice=slice, want=("raw",), previous=previous)
    dtype = np.dtype(getattr(ml_dtypes, header.data_dtype, None) or header.data_dtype)
    return header.address, np.frombuffer(data, dtype).reshape(header.data_shape)


async def compare(
    hub: Hub,
    name: str,
    a: str,
    b: str,
    *,
    mode: CompareMode,
    atol: float,
    rtol: float,
    slice: str,
    want: tuple[str, ...],
) -> tuple[ComparisonHeader, bytes | memoryview]:
    """Two tensors side by side; b is an address, `run!address`, or `prev` for a's own value one step before."""
    first, left = await array(hub, name, a, slice=slice)
    if b in ("prev", "previous"):
        second, right = await array(hub, name, a, slice=slice, previous=True)
    else:
        other, _, address = b.rpartition("!")
        second, right = await array(hub, other or name, address, slice=slice)
    return await asyncio.to_thread(
        side_by_side,
        left,
        right,
        names=(first, second),
        mode=mode,
        atol=atol,
        rtol=rtol,
        slice=str(parse_slice("", left.shape)),
        want=want,
    )


def _one_before(run: Run, wanted: Address) -> Address:
    last = wanted.step if wanted.step is not None else (run.last_step.number if run.last_step else 0)
    steps = [
        stored.address.step
        for stored in run.tensors(wanted.at(step=None), rank=wanted.rank)
        if stored.address.step is not None and stored.address.step < last
    ]
    return wanted.at(step=max(steps)) if steps else wanted.at(step=max(last - 1, 0))
