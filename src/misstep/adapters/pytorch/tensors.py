"""From a torch tensor to a row of the frame.

A tensor on the CPU is read where it lies, by a native kernel; one on an accelerator gets a handful of queued torch
operations and is fetched with all others of the step in a single transfer. A tensor that passes several places in a
step (a container returns its last child's output) is summarised once: the second row is an alias of the first.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import torch

from misstep import kernels
from misstep.adapters.step.frame import Catalog, Frame
from misstep.core.stats import DTYPE_CODES, SUMMARY, Array

CODES: dict[torch.dtype, int] = {
    getattr(torch, name): code for name, code in DTYPE_CODES.items() if hasattr(torch, name)
}
NAMES: dict[torch.dtype, str] = {getattr(torch, name): name for name in DTYPE_CODES if hasattr(torch, name)}

_NUMPY_LACKS: dict[torch.dtype, tuple[torch.dtype, Any]] = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e4m3fnuz: (torch.uint8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2fnuz: (torch.uint8, ml_dtypes.float8_e5m2fnuz),
}
_PLAIN = frozenset(NAMES) - frozenset(_NUMPY_LACKS) - {torch.complex64, torch.complex128}
"""Numpy reads these as they are."""

_TENSOR, _PARAMETER, _STRIDED = torch.Tensor, torch.nn.Parameter, torch.strided
_DEEPEST = 8
"""Nesting of outputs beyond which we stop looking; a list that contains itself must not hang training."""


def leaves(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Every tensor in a nest of tuples, lists, dicts and dataclasses, in the order a person reads them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth > _DEEPEST or value is None or isinstance(value, str | int | float):
        return
    elif isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item, depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name, None), depth + 1)


def has_memory(tensor: torch.Tensor) -> bool:
    """False for a tensor that torch.func wraps around another; a network may hold such for the time of a call."""
    try:
        tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return False
    return True


def array(tensor: torch.Tensor) -> Array:
    """The tensor's memory as numpy, without a copy when it lies on the CPU."""
    if (
        type(tensor) is torch.Tensor
        and tensor.is_cpu
        and tensor.dtype in _PLAIN
        and not tensor.requires_grad
        and not tensor.is_neg()
        and tensor.layout is torch.strided
    ):
        plainly: Array = tensor.numpy()
        return plainly
    plain = plain_tensor(tensor)
    if plain is None:
        raise TypeError(f"a {type(tensor).__name__} on {tensor.device} holds no memory that can be read")
    plain = plain.detach()
    if plain.device.type != "cpu":
        plain = plain.cpu()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if plain.dtype in _NUMPY_LACKS:
        carrier, wanted = _NUMPY_LACKS[plain.dtype]
        plain = plain.view(carrier)
        strange: Array = plain.numpy().view(wanted)
        return strange
    values: Array = plain.numpy()
    return values


def plain_tensor(tensor: torch.Tensor) -> torch.Tensor | None:
    """A dense tensor with the same values and real memory, or None (meta, fake, nested, quantised)."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        local = getattr(tensor, "_local_tensor", None)  # DTensor: this rank's part
        if isinstance(local, torch.Tensor):
            tensor = local
        elif hasattr(tensor, "__tensor_flatten__"):
            return None
        else:
            tensor = tensor.as_subclass(torch.Tensor)
    if tensor.layout is not torch.strided:
        if tensor.layout is torch.sparse_coo:
            return tensor._values()
        return tensor.values() if tensor.layout in (torch.sparse_csr, torch.sparse_csc) else None
    if tensor.device.type == "meta" or tensor.is_quantized or tensor.dtype not in CODES:
        return None
    return tensor


class Seer:
    """Turns passing tensors into rows of the frame."""

    def __init__(self, catalog: Catalog, frame: Frame, wants: dict[int, Callable[[int, Any], None]]) -> None:
        self.catalog = catalog
        self.frame = frame
        self.wants = wants
        self.force_queue = False
        self.unreadable = 0
        """Tensors met that hold no memory we can read."""
        self.row_of_memory: Callable[[torch.Tensor], int] = lambda tensor: -1
        """The row in which an operator already summarised this memory, or -1."""
        self._memo: dict[int, tuple[Callable[[], Any], int, int]] = {}
        self._queue: list[tuple[int, torch.Tensor]] = []

    def begin(self) -> None:
        """A new step: nothing has been seen yet."""
        self._memo.clear()
        self._queue.clear()

    def see(
        self, number: int, tensor: torch.Tensor, inputs: tuple[int, ...] | None = None, inside: Sequence[int] = ()
    ) -> int:
        """A row for this tensor; -1 when it has no memory to read."""
        version = 0 if tensor.is_inference() else tensor._version
        known = self._memo.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version:
            row = self.frame.alias(number, known[2], inputs, known[0], inside)
        else:
            ref = weakref.ref(tensor)
            same = self.row_of_memory(tensor)
            if same >= 0 and self.frame.count(same) == tensor.numel():
                row = self.frame.alias(number, same, inputs, ref, inside)
            else:
                row = self.fresh(number, tensor, inputs, ref, inside)
            if row < 0:
                return row
            self._memo[id(tensor)] = (ref, version, row)
        want = self.wants.get(number)
        if want is not None:
            want(row, tensor)
        return row

    def seen(self, tensor: torch.Tensor) -> int:
        """The row of a tensor that passed in this step unchanged, or -1."""
        known = self._memo.get(id(tensor))
        if known is None or known[0]() is not tensor:
            return -1
        version = 0 if tensor.is_inference() else tensor._version
        return known[2] if known[1] == version else -1

    def given(self, tensor: torch.Tensor) -> int:
        """The row in which a module gave this tensor in this step, or -1."""
        row = self.seen(tensor)
        return row if row >= 0 and self.catalog.graph.tensors[self.frame.tensors[row]].role == "output" else -1

    def fresh(
        self,
        number: int,
        tensor: torch.Tensor,
        inputs: tuple[int, ...] | None = None,
        ref: Any = None,
        inside: Sequence[int] = (),
    ) -> int:
        """A row filled from memory, whether or not the tensor was seen before."""
        code = CODES.get(tensor.dtype)
        kind = type(tensor)
        plain: torch.Tensor | None = tensor
        if (kind is not torch.Tensor and kind is not torch.nn.Parameter) or tensor.layout is not torch.strided:
            plain = plain_tensor(tensor)
        if plain is None or code is None or plain.device.type == "meta":
            self.unreadable += 1
            return -1
        shape = self.catalog.shape(tensor.shape)
        frame = self.frame
        row = frame.reserve(number, shape, code, inputs, ref, inside)
        if plain.device.type != "cpu" or self.force_queue:
            self._queue.append((row, queued_summary(plain)))
        elif plain.is_contiguous():
            kernels.summarize_memory(plain.data_ptr(), plain.numel(), code, frame.summary, row)
        else:
            kernels.summarize_strided(plain.data_ptr(), tuple(plain.shape), plain.stride(), code, frame.summary, row)
        return row

    def many(self, numbers: list[int], tensors: list[torch.Tensor], inputs: list[tuple[int, ...] | None]) -> list[int]:
        """Rows for a list of tensors (gradients, weights) in one native call."""
        frame, catalog = self.frame, self.catalog
        rows: list[int] = []
        addresses: list[int] = []
        counts: list[int] = []
        codes: list[int] = []
        for number, tensor, source in zip(numbers, tensors, inputs):
            code = CODES.get(tensor.dtype)
            if (
                code is None
                or tensor.layout is not torch.strided
                or tensor.device.type != "cpu"
                or self.force_queue
                or not tensor.is_contiguous()
                or not _ordinary(tensor)
            ):
                self._flush(rows, addresses, counts, codes)
                addresses, counts, codes = [], [], []
                rows.append(self.fresh(number, tensor, source, weakref.ref(tensor)))
                continue
            rows.append(frame.reserve(number, catalog.shape(tensor.shape), code, source, weakref.ref(tensor)))
            addresses.append(tensor.data_ptr())
            counts.append(tensor.numel())
            codes.append(code)
        self._flush(rows, addresses, counts, codes)
        if self.wants:
            for number, row, tensor in zip(numbers, rows, tensors):
                want = self.wants.get(number)
                if want is not None and row >= 0:
                    want(row, tensor)
        return rows

    def _flush(self, rows: list[int], addresses: list[int], counts: list[int], codes: list[int]) -> None:
        if addresses:
            kernels.summarize_many(addresses, counts, codes, self.frame.summary, rows[-1] - len(addresses) + 1)

    def fetch(self) -> None:
        """Bring every queued summary from the device, in one transfer."""
        if not self._queue:
            return
        with torch.no_grad():
            together = torch.stack([summary for _, summary in self._queue]).cpu().numpy()
        for (row, _), values in zip(self._queue, together):
            for name, value in zip(SUMMARY.names or (), values):
                self.frame.summary[row][name] = value
        self._queue.clear()


def nonfinite(tensors: list[torch.Tensor]) -> list[int]:
    """Positions of those that hold NaN or Inf: one native call for the CPU, one transfer for the rest."""
    bad: list[int] = []
    places: list[int] = []
    addresses: list[int] = []
    counts: list[int] = []
    codes: list[int] = []
    away: list[int] = []
    for place, tensor in enumerate(tensors):
        kind = type(tensor)
        code = CODES.get(tensor.dtype, -1)
        if (
            (kind is _TENSOR or kind is _PARAMETER)
            and code >= 0
            and tensor.is_cpu
            and tensor.layout is _STRIDED
            and tensor.is_contiguous()
        ):
            places.append(place)
            addresses.append(tensor.data_ptr())
            counts.append(tensor.numel())
            codes.append(code)
        else:
            away.append(place)
    if places:
        flags = kernels.nonfinite_many(addresses, counts, codes)
        if any(flags):
            bad.extend(place for place, flag in zip(places, flags) if flag)
    if away:
        with torch.no_grad():
            plain = [(place, plain_tensor(tensors[place])) for place in away]
            readable = [(place, tensor) for place, tensor in plain if tensor is not None]
            if readable:
                finite = torch.stack([torch.isfinite(tensor).all() for _, tensor in readable]).cpu().tolist()
                bad.extend(place for (place, _), good in zip(readable, finite) if not good)
    return sorted(bad)


def digest(tensor: torch.Tensor) -> int:
    """A number that differs when any bit of the tensor does."""
    plain = plain_tensor(tensor.detach())
    if plain is None:
        return 0
    plain = plain.cpu().contiguous()
    return kernels.digest(plain.data_ptr(), plain.numel() * plain.element_size())


def digests(found: list[torch.Tensor]) -> list[int]:
    """One digest for each tensor, in one native call where they lie on the CPU."""
    if all(one.device.type == "cpu" and one.layout is torch.strided and one.is_contiguous() for one in found):
        return kernels.digest_many(
            [one.data_ptr() for one in found], [one.numel() * one.element_size() for one in found]
        )
    return [digest(one) for one in found]


def queued_summary(tensor: torch.Tensor) -> torch.Tensor:
    """The thirteen numbers of SUMMARY as a float64 vector on the tensor's own device; nothing waits."""
    with torch.no_grad():
        values = tensor.detach().reshape(-1)
        if values.is_complex():
            parts = torch.view_as_real(values)
            nan = torch.isnan(parts).any(-1)
            inf = torch.isinf(parts).any(-1) & ~nan
            values = torch.where(nan, torch.nan, torch.where(inf, torch.inf, values.abs().double()))
        # Apple's devices have no float64; float32 sums are good enough there.
        wide = torch.float32 if values.device.type == "mps" else torch.float64
        values = values.to(wide)
        count = float(values.numel())
        finite = torch.isfinite(values)
        number = finite.sum(dtype=wide)
        kept = torch.where(finite, values, 0)
        scale = kept.abs().amax().clamp_min(1e-300) if values.numel() else kept.new_ones(())
        unit = kept / scale
        mean = unit.sum() / number
        spread = torch.where(finite, unit - mean, 0).square().sum() / number
        if values.numel():
            low = torch.where(finite, values, torch.inf).amin()
            high = torch.where(finite, values, -torch.inf).amax()
        else:
            low = high = kept.new_full((), torch.nan)
        none = number == 0
        nan_value = kept.new_full((), torch.nan)
        return torch.stack(
            [
                kept.new_full((), count),
                torch.isnan(values).sum(dtype=wide),
                (values == torch.inf).sum(dtype=wide),
                (values == -torch.inf).sum(dtype=wide),
                (values == 0).sum(dtype=wide),
                (values < 0).sum(dtype=wide),
                (values > 0).sum(dtype=wide),
                torch.where(none, nan_value, low),
                torch.where(none, nan_value, high),
                mean * scale,
                unit.abs().sum() / number * scale,
                unit.square().sum().sqrt() * scale,
                spread.sqrt() * scale,
            ]
        ).double()


def _ordinary(tensor: torch.Tensor) -> bool:
    kind = type(tensor)
    return (kind is torch.Tensor or kind is torch.nn.Parameter) and tensor.dtype in CODES
