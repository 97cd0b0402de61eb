"""What a program does between an update and its next network: preparing a batch, writing to weights, evaluating.

Every function called there is remembered for a moment, with its line; when the next network begins, one native call
looks at what they made. If all is finite they are forgotten. If not, those from the first that made something bad of
finite inputs are put on the tape, so that a replay of the step names them, and NaN in an evaluation is told at once.

    update ─► x = normalise(batch) ─► network begins: finite? forget : tape from the guilty function on
           └► with no_grad: metric(net(x)) ─► NaN? told as a fault of the evaluation
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from misstep.adapters.pytorch.names import source_line, user_frame
from misstep.adapters.pytorch.replay.entries import has_history
from misstep.adapters.pytorch.replay.functions import writes
from misstep.adapters.pytorch.tensors import has_memory, leaves, nonfinite
from misstep.core.graph import Source

if TYPE_CHECKING:
    from misstep.adapters.pytorch.replay.tape import Tape

_MOST = 256
"""Functions remembered before somebody looks at them: an evaluation calls many."""
_MOST_BYTES = 64 << 20
"""Of what they made: more is looked at before it grows."""


@dataclass(slots=True)
class Heard:
    """One call outside of steps."""

    call: Any
    args: Any
    kwargs: dict[str, Any]
    line: tuple[CodeType, int] | None
    grad: bool
    output: Any
    made: list[torch.Tensor] = field(default_factory=list)
    written: list[torch.Tensor] = field(default_factory=list)
    stale: set[int] = field(default_factory=set)
    """Memory that was written to by it or after it: what it held at the time is not known."""

    @property
    def is_network(self) -> bool:
        return isinstance(self.call, nn.Module)

    def given(self) -> Iterator[torch.Tensor]:
        """What it was made of; memory it has written to no longer holds what it was."""
        own = {id(one) for one in self.written}
        return (one for one in leaves((self.args, self.kwargs)) if id(one) not in own)


class Prelude:
    """Remembers the calls between an update and the next network."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self.on = False
        self._calls: list[Heard] = []
        self._bytes = 0
        self._evaluated = False
        """A network ran without gradients."""

    def begin(self) -> None:
        """Weights have moved: whatever is called now belongs to no step."""
        self.on = True
        self._forget()
        self._tape.listen()

    def end(self) -> None:
        """A network begins to train, or the program ends: judge what came before it."""
        if self.on:
            self.on = False
            self._look()
            self._forget()

    def _forget(self) -> None:
        self._calls, self._bytes, self._evaluated = [], 0, False

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """A network runs without gradients: what it calls is its own affair."""
        self.on = False
        self._tape.pause()
        try:
            yield
        finally:
            self.on = self._tape.armed
            self._tape.listen()

    # ── what is called ────────────────────────────────────────────────────────────────────────────────────────

    def heard(self, function: Any, args: Any, kwargs: dict[str, Any], frame: FrameType | None) -> Any:
        """Call a torch function and remember it."""
        with self._tape.deaf():
            output = function(*args, **kwargs)
        if hasattr(output, "__next__"):  # iter(tensor)
            made = list(output)
            self._remember(function, args, kwargs, frame, made)
            return iter(made)
        self._remember(function, args, kwargs, frame, output)
        return output

    def evaluated(self, network: nn.Module, args: Any, kwargs: dict[str, Any], output: Any, frame: Any) -> None:
        """A network has run without gradients."""
        self._evaluated = True
        self._remember(network, args, kwargs, frame, output)

    def _remember(self, call: Any, args: Any, kwargs: dict[str, Any], frame: FrameType | None, output: Any) -> None:
        with self._tape.deaf():
            # Without elements: the empty tensor that a batch from another process is put into, which nobody hears.
            made = [one for one in leaves(output) if one.numel() and _readable(one)]
            if not made or any(has_history(one) for one in (*made, *leaves((args, kwargs)))):
                return  # of a step that is over: to hold it would keep its graph alive
        user = user_frame(frame)
        line = None if user is None else (user.f_code, user.f_lineno)
        one = Heard(call, args, kwargs, line, torch.is_grad_enabled(), output, made)
        if writes(call, kwargs):
            one.written = list(leaves(kwargs.get("out", args[0] if args else None)))
        self._calls.append(one)
        self._bytes += sum(tensor.nbytes for tensor in made)
        if len(self._calls) >= _MOST or self._bytes > _MOST_BYTES:
            guilty = self._look()
            del self._calls[: len(self._calls) if guilty is None else guilty]
            self._bytes = sum(tensor.nbytes for heard in self._calls for tensor in heard.made)
            if len(self._calls) >= _MOST:
                del self._calls[_MOST // 2 :]

    # ── what became of it ─────────────────────────────────────────────────────────────────────────────────────

    def _look(self) -> int | None:
        """Where the first call stands that made something bad of finite inputs; tape it and what follows from it."""
        tape = self._tape
        with tape.deaf(), tape.adapter.quietly():
            bad = self._bad()
            guilty = next((place for place in bad if self._is_origin(place, bad)), None)
            if guilty is None:
                return None
            if self._evaluated:
                self._tell(self._calls[guilty], self._calls[guilty:])
            if not self.on:
                tape.begin()
                for place in bad:  # what the others made is finite, and still there
                    if place >= guilty:
                        tape.took_place(self._calls[place])
        return guilty

    def _bad(self) -> dict[int, set[int]]:
        """By place of a call: the memory it filled that holds NaN or +Inf now, and that nobody wrote to since."""
        calls = self._calls
        if not nonfinite([tensor for heard in calls for tensor in heard.made]):
            return {}
        made: list[tuple[int, torch.Tensor]] = []
        written: set[int] = set()
        for place in range(len(calls) - 1, -1, -1):
            heard = calls[place]
            own = {_storage(one) for one in heard.written if _readable(one)}
            shared = set() if own else {_storage(one) for one in heard.given() if _readable(one)}
            made += [  # a view makes nothing
                (place, one)
                for one in heard.made
                if _readable(one) and _storage(one) not in written and _storage(one) not in shared
            ]
            heard.stale = own | written
            written |= own
        made.reverse()
        bad: dict[int, set[int]] = {}
        for index in nonfinite([tensor for _, tensor in made]):
            place, tensor = made[index]
            if _spoiled(tensor):
                bad.setdefault(place, set()).add(_storage(tensor))
        return dict(sorted(bad.items()))

    def _is_origin(self, place: int, bad: dict[int, set[int]]) -> bool:
        """Whether everything this call was given was finite, as far as its memory still tells."""
        heard = self._calls[place]
        known = [one for one in heard.given() if _readable(one) and _storage(one) not in heard.stale]
        before = {storage for earlier, storages in bad.items() if earlier < place for storage in storages}
        return not any(_storage(one) in before or _spoiled(one) for one in known)

    def _tell(self, guilty: Heard, after: list[Heard]) -> None:
        """NaN in an evaluation: in what a network gave without gradients, or in a number made of it."""
        ends = [
            tensor
            for heard in after
            for tensor in heard.made
            if not heard.grad and (heard.is_network or tensor.numel() == 1) and _readable(tensor)
        ]
        if not any(bool(torch.isnan(tensor).any()) for tensor in ends):
            return
        adapter = self._tape.adapter
        source: Source | None = None if guilty.line is None else source_line(guilty.line[0].co_filename, guilty.line[1])
        op = type(guilty.call).__name__ if guilty.is_network else str(getattr(guilty.call, "__name__", guilty.call))
        node = adapter.catalog.node(
            f"evaluation/{op}" if source is None else f"evaluation/{op}:{source.line}", "operator", op, source=source
        )
        adapter.catalog.tensor(node, "output")
        bad = next(one for one in guilty.made if _spoiled(one))
        adapter.listener.between_steps(adapter, node, bad)


def _storage(tensor: torch.Tensor) -> int:
    """The memory of a tensor and of all its views."""
    return tensor.untyped_storage().data_ptr()


def _readable(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and tensor.is_floating_point()
        and has_memory(tensor)
    )


def _spoiled(tensor: torch.Tensor) -> bool:
    """NaN or +Inf; -Inf alone is a mask."""
    values = tensor.detach()
    return bool((torch.isnan(values) | torch.isposinf(values)).any())
